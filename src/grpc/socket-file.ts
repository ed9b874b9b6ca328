/**
 * Listens on a unix socket whose file appears complete: with its mode, in place
 * of a file that a former process left.
 */
import { chmodSync, lstatSync, renameSync, rmSync } from "node:fs";
import type { Server } from "node:net";
import { basename, dirname, join } from "node:path";
import { quoted } from "../quote.ts";

/** Returns a function that removes the file, unless it is another one by then. */
export async function listenAt(server: Server, path: string, mode: number): Promise<() => void> {
  const former = lstatSync(path, { throwIfNoEntry: false });
  if (former !== undefined && !former.isSocket()) {
    throw new Error(`Cannot listen at ${quoted(path)}: there is a file that is not a socket; remove it`);
  }
  // Programs that look for sockets in a directory, as the kubelet does, skip hidden ones.
  const hidden = join(dirname(path), `.${basename(path)}.new`);
  rmSync(hidden, { force: true });
  await listening(server, hidden, path);
  chmodSync(hidden, mode);
  renameSync(hidden, path);
  const file = new SocketFile(path);
  return () => file.remove();
}

/** The file that is at this path now: the kernel does not give its number to another one while the socket is open. */
export class SocketFile {
  private readonly device: number;
  private readonly inode: number;

  constructor(private readonly path: string) {
    ({ dev: this.device, ino: this.inode } = lstatSync(path));
  }

  /** And no other in its place. */
  get isThere(): boolean {
    const present = lstatSync(this.path, { throwIfNoEntry: false });
    return present?.ino === this.inode && present.dev === this.device;
  }

  /** Unless there is another one by now. */
  remove(): void {
    if (this.isThere) rmSync(this.path, { force: true });
  }
}

function listening(server: Server, hidden: string, path: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const refuse = (failure: Error) => reject(new Error(`Cannot listen at ${quoted(path)}: ${reasonOf(failure, path)}`));
  server.once("error", refuse);
  server.listen(hidden, () => {
    server.off("error", refuse);
    resolve();
  });
  return promise;
}

/** The runtime's own message does not name the cause. */
function reasonOf(failure: Error & { readonly code?: string }, path: string): string {
  const directory = quoted(dirname(path));
  switch (failure.code) {
    case "ENOENT":
      return `the directory ${directory} does not exist: is the volume mounted?`;
    case "EACCES":
      return `this process may not write to the directory ${directory}`;
    case "EROFS":
      return `the directory ${directory} is read-only: a socket can only be created in a writable volume`;
    default:
      return failure.message;
  }
}
