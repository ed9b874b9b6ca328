/** Programs of the host that the admin tool runs, such as Helm. */
import type { Program } from "../admin/command.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** `name`: a path, or a name to be found in PATH. */
export function findProgram(name: string, environment: Environment): Program | undefined {
  const path = Bun.which(name, { PATH: environment["PATH"] ?? "" });
  if (path === null) return undefined;
  return async (args, stdin = "") => {
    const running = Bun.spawn([path, ...args], {
      env: { ...environment },
      stdin: new Blob([stdin]),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, code] = await Promise.all([
      new Response(running.stdout).text(),
      new Response(running.stderr).text(),
      running.exited,
    ]);
    return { code, stdout, stderr };
  };
}
