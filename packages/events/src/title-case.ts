/** `argocd` → `Argocd`, `version_service__version` → `Version_Service__Version`. Only for display: metadata has the machine name (S2-5). */
export function titleCase(name: string): string {
  return name.replace(/(^|[_\-\s])(\p{Ll})/gu, (_match, before: string, letter: string) => before + letter.toUpperCase());
}
