/** Finds links to files that do not exist in the repository. Web links are not checked. */
import { dirname, join } from "node:path";

export function brokenLinks(page: string, text: string, exists: (path: string) => boolean): readonly string[] {
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target.replace(/#.*$/, ""))
    .filter((target) => target !== "" && !/^[a-z]+:/.test(target))
    .filter((target) => !exists(join(dirname(page), target)));
}
