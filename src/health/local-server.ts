/** A small HTTP server whose address may change or be switched off while it runs. */
import type { Pages } from "./pages.ts";

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
  /** Two processes cannot both listen there. Otherwise they can, and the kernel chooses one for each connection. */
  readonly isExclusive?: boolean;
}

export class LocalServer {
  private server: ReturnType<typeof Bun.serve> | undefined;
  private address = "";

  constructor(
    private readonly pages: Pages,
    private readonly report: (message: string) => void,
  ) {}

  /** Listens there from now on; `undefined`: nowhere. An address in use is reported, and tried again at the next call. */
  listen(wanted: ServerAddress | undefined): void {
    const address = wanted === undefined ? "" : `${wanted.host}:${wanted.port}`;
    if (address === this.address) return;
    this.close();
    if (wanted === undefined) return;
    const [first, ...others] = namesOf(wanted.host);
    const failure = this.tryListening(first, wanted);
    // A kernel without IPv6 has no addresses of both families.
    if (failure !== undefined && others.every((host) => this.tryListening(host, wanted) !== undefined)) {
      this.report(`Cannot listen at ${address}: ${failure}`);
    } else this.address = address;
  }

  /** Returns why it cannot. */
  private tryListening(hostname: string, { port, isExclusive = false }: ServerAddress): string | undefined {
    try {
      this.server = Bun.serve({
        hostname,
        port,
        development: false,
        // The runtime's default is `true` if this is not for development.
        reusePort: !isExclusive,
        // A request of HTTP 1.0 has no host, and its URL is the path alone.
        fetch: ({ url }) => this.respond(new URL(url, "http://localhost").pathname),
      });
      return undefined;
    } catch (failure) {
      return failure instanceof Error ? failure.message : String(failure);
    }
  }

  close(): void {
    void this.server?.stop(true);
    this.server = undefined;
    this.address = "";
  }

  private respond(path: string): Response {
    const reply = this.pages(path);
    if (reply === undefined) return new Response("not found\n", { status: 404 });
    return new Response(reply.text.endsWith("\n") ? reply.text : `${reply.text}\n`, { status: reply.status });
  }
}

/** What to listen at, in order of preference: "" is all addresses of both families. */
function namesOf(host: string): readonly [string, ...string[]] {
  if (host === "localhost") return ["127.0.0.1"];
  return host === "" ? ["::", "0.0.0.0"] : [host];
}
