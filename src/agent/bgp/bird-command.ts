/**
 * How `bird` is started. In a container that is BIRD of the image, even if the host has one: its version is the tested one.
 * The files of the image exist only below the root of the container, so the loader of the image starts it, with the
 * libraries beside that loader.
 */
import { statSync } from "node:fs";
import { basename, dirname, join } from "node:path";

interface Places {
  /** Of the host: directories, separated by colons. */
  readonly path: string;
  /** Where a file of the container is; `undefined` outside a container. */
  readonly inContainer: (path: string) => string | undefined;
}

const SEARCHED = ["/usr/local/sbin", "/usr/sbin", "/sbin"];
const PROGRAM_OF_IMAGE = "/usr/sbin/bird";
/** A link to the loader of the image: the kernel names the process after it. */
const LOADER_OF_IMAGE = "/usr/libexec/bird";

/** The program with its first arguments; `undefined` if there is no BIRD. */
export function birdCommand(places: Places): readonly string[] | undefined {
  return birdOfImage(places) ?? birdOfHost(places);
}

function birdOfImage({ inContainer }: Places): readonly string[] | undefined {
  const program = inContainer(PROGRAM_OF_IMAGE);
  const directory = inContainer(dirname(LOADER_OF_IMAGE));
  // Where the link leads to: the libraries are there.
  const loader = inContainer(LOADER_OF_IMAGE);
  if (program === undefined || directory === undefined || loader === undefined) return undefined;
  if (!isFile(program) || !isFile(loader)) return undefined;
  const link = join(directory, basename(LOADER_OF_IMAGE));
  return [link, "--library-path", dirname(loader), "--argv0", "bird", program];
}

function birdOfHost({ path }: Places): readonly string[] | undefined {
  const found = Bun.which("bird", { PATH: [path, ...SEARCHED].join(":") });
  return found === null ? undefined : [found];
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
