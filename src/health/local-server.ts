/** Serves pages by HTTP at an address that may change or be switched off while it runs. */
import { listenForPages, type PageListener } from "./page-listener.ts";
import type { Pages } from "./pages.ts";

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
  /** Two processes cannot both listen there. Otherwise they can, and the kernel chooses one for each connection. */
  readonly isExclusive?: boolean;
}

export class LocalServer {
  private listener: PageListener | undefined;
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
      this.listener = listenForPages({ hostname, port, isExclusive }, this.pages);
      return undefined;
    } catch (failure) {
      return reasonOf(failure);
    }
  }

  close(): void {
    this.listener?.stop();
    this.listener = undefined;
    this.address = "";
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use.",
  EADDRNOTAVAIL: "this host has no such address.",
};

/** The runtime says no more than that it has failed. */
function reasonOf(failure: unknown): string {
  if (!(failure instanceof Error)) return String(failure);
  const code = "code" in failure ? String(failure.code) : "";
  return REASONS[code] ?? `${failure.message} ${code}`.trim();
}

/** What to listen at, in order of preference: "" is all addresses of both families. */
function namesOf(host: string): readonly [string, ...string[]] {
  if (host === "localhost") return ["127.0.0.1"];
  return host === "" ? ["::", "0.0.0.0"] : [host];
}
