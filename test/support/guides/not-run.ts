type NotRun = { guide: string; begins: string; because: string };

const KUBERNETES = 'needs a cluster of Kubernetes; test/kubernetes installs and upgrades the chart where there is one';
const SCHEMA = 'values for the chart: test/repo/guides.test.ts checks them with its schema';

/** The code of guides that no test runs as it stands: how it begins, and why. test/repo/guides.test.ts checks that each entry still matches. */
export const NOT_RUN: readonly NotRun[] = [
  {
    guide: 'kubernetes.md',
    begins: 'npm run image',
    because: 'takes minutes; test/e2e/image.test.ts builds and starts the image',
  },
  ...['kind ', 'helm ', 'kubectl ', 'for i in 0 1 2; do kubectl', 'FOLDER=$(kubectl', 'PASSWORD=$(kubectl', 'password() {'].map(
    begins => ({
      guide: 'kubernetes.md',
      begins,
      because: KUBERNETES,
    }),
  ),
  { guide: 'kubernetes.md', begins: 'npm run -s hopline -- ask', because: KUBERNETES },
  ...['agents:', 'pods:', 'networkPolicy:', 'tls:', 'cat > weather.yaml'].map(begins => ({
    guide: 'kubernetes.md',
    begins,
    because: SCHEMA,
  })),
  ...['python3 -m venv', 'npm install'].map(begins => ({
    guide: 'frameworks.md',
    begins,
    because: 'installs over the network; test/integration/agents/framework-recipes.test.ts installs the same versions once',
  })),
  {
    guide: 'load-balancers.md',
    begins: 'upstream ingress',
    because: 'has the addresses of pods and port 443; test/e2e/nginx.test.ts runs nginx with the same settings',
  },
  {
    guide: 'observing.md',
    begins: 'npm run observe',
    because: 'needs Prometheus, Jaeger or Grafana; test/observe/stack.test.ts runs it where they are',
  },
  ...['python3 -m venv', '.venv/bin/python3 -m pip'].map(begins => ({
    guide: 'python-agent.md',
    begins,
    because: 'installs over the network, once for all tests in pythonsWithPackages',
  })),
  { guide: 'tutorial.md', begins: '# Dockerfile', because: 'needs a container engine' },
  { guide: 'tutorial.md', begins: '# values.yaml', because: SCHEMA },
  {
    guide: 'verifying.md',
    begins: 'node test/replay/record-golden/main.ts',
    because: 'writes into the checkout, once for each version; test/replay/golden.test.ts verifies what it has written',
  },
];

/** Why no test runs a part of a guide; undefined if one has to. */
export function notRun(guide: string, part: string): string | undefined {
  return NOT_RUN.find(one => one.guide === guide && part.startsWith(one.begins))?.because;
}
