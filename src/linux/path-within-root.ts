/** Paths below the root of another mount namespace. For rare work: imports node:fs. */
import { readlinkSync } from "node:fs";

/** As the kernel limits them. */
const MAXIMUM_LINKS = 40;

/**
 * Where `path` of the root directory `root` is, for a process with another root: the kernel would follow a symbolic
 * link with an absolute target, such as `/var/run`, to this process's own root. What does not exist stays as it is.
 */
export function pathWithinRoot(root: string, path: string): string {
  const rest = namesIn(path);
  const resolved: string[] = [];
  let links = 0;
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    if (name === "..") resolved.pop();
    else {
      const target = linkTarget(`${root}/${[...resolved, name].join("/")}`);
      if (target === undefined || links === MAXIMUM_LINKS) resolved.push(name);
      else {
        links += 1;
        if (target.startsWith("/")) resolved.length = 0;
        rest.unshift(...namesIn(target));
      }
    }
  }
  return `${root}/${resolved.join("/")}`;
}

function namesIn(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}

/** `undefined` if it is not a link. */
function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
