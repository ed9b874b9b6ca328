/**
 * A tar archive whose bytes depend only on the names, content and modes of the files.
 * `args`: the names of files in the directory, and options; `time`: seconds since 1970.
 */
export async function reproducibleTar(
  directory: string,
  args: readonly string[],
  time: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const same = ["--sort=name", `--mtime=@${time}`, "--owner=0", "--group=0", "--numeric-owner", "--hard-dereference"];
  const command = ["tar", ...same, "--format=gnu", "-C", directory, "-c", ...args];
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [content, complaint] = await Promise.all([
    new Response(child.stdout).arrayBuffer(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`Cannot archive "${directory}": ${complaint}`);
  return new Uint8Array(content);
}
