/**
 * Turns the section `## Unreleased` into that of `version` and begins an empty one (https://keepachangelog.com). Throws if nothing is
 * recorded, because a release needs notes.
 */
export function nextChangelog(changelog: string, version: string, date: string): { changelog: string; notes: string } {
  const section = /^## (?:\[Unreleased\]|Unreleased)\s*\n([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(changelog);
  const notes = section?.[1]?.trim() ?? '';
  if (section === null || notes === '') throw new Error('CHANGELOG.md has no notes below "## Unreleased"');
  const next = `## Unreleased\n\n## ${version} - ${date}\n\n${notes}\n\n`;
  return { changelog: changelog.slice(0, section.index) + next + changelog.slice(section.index + section[0].length), notes };
}
