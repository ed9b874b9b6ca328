/**
 * Paths that name another file in every process: relative ones, and those below /proc/self, /proc/thread-self and
 * /dev/fd. Only the process that was given such a path can resolve it. Pure.
 */

/** Directories in which runtimes keep namespaces. */
const USUAL_DIRECTORIES = ["/run/netns/", "/var/run/netns/"];
const NAMESPACE_OF_PROCESS = /^proc\/\d+\/(task\/\d+\/)?ns\/\w+$/;

/** Symbolic links are not followed. In /dev and /proc, only the namespaces of a numbered process are the same for all. */
export function dependsOnProcess(path: string): boolean {
  if (path === "") return false;
  if (isIn(USUAL_DIRECTORIES, path)) return false;
  if (path[0] !== "/") return true;
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") return true;
    if (part !== "" && part !== ".") parts.push(part);
  }
  if (parts[0] === "dev") return true;
  return parts[0] === "proc" && !NAMESPACE_OF_PROCESS.test(parts.join("/"));
}

function isIn(directories: readonly string[], path: string): boolean {
  for (const directory of directories) {
    if (path.startsWith(directory) && !path.includes("/", directory.length)) return path !== `${directory}..`;
  }
  return false;
}
