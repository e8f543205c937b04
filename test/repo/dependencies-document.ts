import { readFileSync } from 'node:fs';
import { DEPENDENCY_REASONS } from './dependency-reasons.ts';
import { type ImagePackage, idOf, imageDependencies } from './image-dependencies.ts';
import { markdownTable } from './markdown-table.ts';
import { ROOT } from './source-files.ts';

/** The text of docs/reference/dependencies.md. */
export async function dependenciesDocument(): Promise<string> {
  const packages = await imageDependencies();
  const direct = DEPENDENCY_REASONS.flatMap(({ packages: names, purpose, notOwn, keptBy }) =>
    packages
      .filter(({ name, isDirect }) => isDirect && names.includes(name))
      .map(one => [`\`${one.name}\``, one.version, purpose, notOwn, keptBy, one.license, String(one.brings.size)]),
  );
  const others = packages
    .filter(({ isDirect }) => !isDirect)
    .map(one => [`\`${one.name}\``, one.version, one.license, broughtBy(packages, one)]);
  const { node } = JSON.parse(readFileSync(`${ROOT}infra/local/bootstrap/pins.json`, 'utf8'));
  return `# Dependencies of the image

Generated from the bundles of the image and \`test/repo/dependency-reasons.ts\` by \`node test/repo/write-reference.ts\`. Do not edit by hand.

The image has ${packages.length} npm packages: ${direct.length} that the sources import, and ${others.length} that those bring. \`/app/sbom.cdx.json\` in the
image lists the same ones with the checksums of the lockfile. A package counts if a bundle imports one of its modules; packages only for tests and
builds are in no bundle. Not from npm: Node ${node.version}, by checksum (\`infra/local/bootstrap/pins.json\`), and the C libraries that it is linked with, from the
Debian of the build.

## Direct

"Brings" counts the other packages whose code is in the image because of this one; packages share them.

${markdownTable([['Package', 'Version', 'For', 'Why not own code', 'Kept by', 'License', 'Brings'], ...direct])}
## Brought by others

${markdownTable([['Package', 'Version', 'License', 'Brought by'], ...others])}`;
}

function broughtBy(packages: readonly ImagePackage[], brought: ImagePackage): string {
  const names = packages.filter(({ isDirect, brings }) => isDirect && brings.has(idOf(brought))).map(({ name }) => `\`${name}\``);
  const families = new Set(names.map(name => name.replace(/^`@opentelemetry\/.*/, '`@opentelemetry/*`')));
  return [...families].join(', ');
}
