/** Runs a command to its end and returns its exit code and its output. */
export async function run(command: readonly string[]): Promise<{ code: number; output: string }> {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, output: (out + err).trim() };
}
