/** A small HTTP server whose address may change or be switched off while it runs. */
export interface HealthReply {
  readonly status: 200 | 503;
  readonly text: string;
}

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

export class LocalServer {
  private server: ReturnType<typeof Bun.serve> | undefined;
  private address = "";

  constructor(
    /** By path; `undefined`: there is no such page. */
    private readonly pages: (path: string) => HealthReply | undefined,
    private readonly report: (message: string) => void,
  ) {}

  /** Listens there from now on; `undefined`: nowhere. An address in use is reported, and tried again at the next call. */
  listen(wanted: ServerAddress | undefined): void {
    const address = wanted === undefined ? "" : `${wanted.host}:${wanted.port}`;
    if (address === this.address) return;
    this.close();
    if (wanted === undefined) return;
    try {
      this.server = Bun.serve({
        hostname: wanted.host === "localhost" ? "127.0.0.1" : wanted.host || "0.0.0.0",
        port: wanted.port,
        development: false,
        // A request of HTTP 1.0 has no host, and its URL is the path alone.
        fetch: ({ url }) => this.respond(new URL(url, "http://localhost").pathname),
      });
      this.address = address;
    } catch (failure) {
      this.report(`Cannot listen at ${address}: ${failure instanceof Error ? failure.message : failure}`);
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
