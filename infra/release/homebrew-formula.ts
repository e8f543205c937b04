import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Tarball } from './npm-pack.ts';

/**
 * Writes a Homebrew formula that installs the npm package `hopline` from npm's registry, and returns its path. `sha256`: checksum of the tarball.
 * `registry`: address with a slash at its end.
 */
export function writeFormula(
  outFolder: string,
  { name, version, manifest }: Tarball,
  { sha256, registry }: { sha256: string; registry: string },
): string {
  const path = join(outFolder, `${name}.rb`);
  writeFileSync(
    path,
    `class Hopline < Formula
  desc "A2A agents over NATS JetStream: a local cluster and the command-line"
  homepage "${registry}${name}"
  url "${registry}${name}/-/${name}-${version}.tgz"
  sha256 "${sha256}"
  license "${manifest.license}"

  depends_on "node"

  def install
    system "npm", "install", *std_npm_args
    bin.install_symlink libexec.glob("bin/*")
  end

  test do
    assert_equal version.to_s, shell_output("#{bin}/hopline --version").strip
  end
end
`,
  );
  return path;
}
