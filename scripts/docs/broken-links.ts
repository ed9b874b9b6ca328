/** Links in pages that lead to no file of the repository. Addresses of the web are not followed. */
import { dirname, join } from "node:path";

export function brokenLinks(page: string, text: string, exists: (path: string) => boolean): readonly string[] {
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target.replace(/#.*$/, ""))
    .filter((target) => target !== "" && !/^[a-z]+:/.test(target))
    .filter((target) => !exists(join(dirname(page), target)));
}
