/**
 * The console of one host: on loopback, for whoever reads the terminal. A token in the fragment of the printed address, which no
 * browser sends anywhere, logs in once; when that session has ended, another one is printed.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { EXIT_OK, type ExitCode } from "../../admin/main/command.ts";
import type { Call, Clock, Host, Terminal } from "../../admin/main/context.ts";
import { printable } from "../../admin/terminal/printable.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { SYSTEM_TIMERS, type Timers } from "../../timers.ts";
import { ConsoleServer } from "../server/console-server.ts";
import type { PageFiles } from "../server/page-files.ts";
import { LOOPBACK_NAMES } from "../server/request-checks.ts";
import { type ConsoleSource, TokenRefused } from "../source.ts";

export type HostConsoleContext = Pick<Call, "signal" | "version"> &
  Pick<Terminal, "stdout" | "stderr"> &
  Pick<Clock, "now" | "clock"> &
  Pick<Host, "startedBy">;

export interface HostConsole {
  /** 0: one that is free. */
  readonly port: number;
  readonly writable: boolean;
  /** Whether the address is printed as JSON, a line each. */
  readonly asJson: boolean;
  readonly page: PageFiles;
  /** For each session. */
  readonly openSource: (signal: AbortSignal) => Promise<ConsoleSource>;
  readonly timers?: Timers;
}

const LOOPBACK = "127.0.0.1";
const CHECK_MILLISECONDS = 2_000;

/** Resolves when the user stops it, and when the process that has started it ends. */
export async function serveHost(context: HostConsoleContext, console: HostConsole): Promise<ExitCode> {
  const { now, clock, signal, startedBy, version } = context;
  const { writable, page, openSource, timers = SYSTEM_TIMERS } = console;
  const login = new OneTimeToken();
  const server = new ConsoleServer({
    ...{ page, clock, timers, now: () => now().getTime() },
    openSource: async (token, stop) => {
      login.take(token);
      try {
        return await openSource(stop);
      } catch (failure) {
        printAddress();
        throw failure;
      }
    },
    about: { product: identity.title, version, mode: "host", writable },
    // Cookies do not know ports, and two consoles may run.
    cookie: () => `${identity.console}-${server.port}`,
    // Of any port: it may be forwarded by ssh.
    isOwnHost: (name) => LOOPBACK_NAMES.has(name),
    log: (message) => context.stderr(`${printable(message)}\n`),
    onSessionEnd: () => signal.aborted || printAddress(),
  });
  const printAddress = () => {
    const address = `http://${LOOPBACK}:${server.port}/#token=${login.renew()}`;
    context.stdout(console.asJson ? `${JSON.stringify({ address })}\n` : `${address}\n`);
  };
  await listenAt(server, console.port);
  try {
    if (!console.asJson) context.stderr(`The console of this host; Ctrl-C ends it. Open once, in a browser:\n`);
    printAddress();
    const parent = startedBy();
    while (!signal.aborted && startedBy() === parent) await clock.wait(CHECK_MILLISECONDS, signal);
  } finally {
    server.close();
  }
  return EXIT_OK;
}

async function listenAt(server: ConsoleServer, port: number): Promise<void> {
  try {
    await server.listen(LOOPBACK, port);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    const reason =
      code === "EADDRINUSE" ? "the port is in use" : code === "EACCES" ? "permission denied" : String(cause);
    throw new PluginError("io-failure", `Cannot serve the console at ${LOOPBACK}:${port}: ${reason}`, {
      details: "choose another port with --port, or leave it out",
      cause,
    });
  }
}

/** Only its hash is kept. */
class OneTimeToken {
  private hash: Buffer | undefined;

  renew(): string {
    const token = randomBytes(32).toString("base64url");
    this.hash = hashOf(token);
    return token;
  }

  /** Throws `TokenRefused`. */
  take(token: string): void {
    const isRight = this.hash !== undefined && timingSafeEqual(this.hash, hashOf(token));
    if (!isRight)
      throw new TokenRefused("Cannot log in: the address was opened before, or is another one", {
        details: `open the address that "${identity.adminTool} console" has printed last`,
      });
    this.hash = undefined;
  }
}

function hashOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
