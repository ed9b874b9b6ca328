/**
 * Runs an exec credential plugin (`user.exec` of a kubeconfig) and keeps its
 * credentials until they expire.
 *
 * The plugin gets the environment of this process without BUN_* variables, which
 * would make an executable of ours act as a bare runtime. It never gets a terminal.
 */
import { PluginError } from "../errors.ts";
import { parseJson } from "../parse-json.ts";
import { quoted } from "../quote.ts";
import { redact } from "../redaction.ts";
import type { ExecPlugin, KubeCluster } from "./kubeconfig-entries.ts";

export interface ExecMeans {
  /** The environment for other programs. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly now: () => Date;
}

interface Issued {
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly expires?: number;
}

const API_VERSIONS = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];
const LIMIT_MILLISECONDS = 10_000;
const MOST_OUTPUT_BYTES = 1024 * 1024;

/** New credentials are requested a little early: a request takes time, and clocks differ. */
const EARLY_MILLISECONDS = 10_000;

export class ExecCredentials {
  private issued: Promise<Issued> | undefined;
  private expires = Number.POSITIVE_INFINITY;

  constructor(
    private readonly plugin: ExecPlugin,
    private readonly means: ExecMeans & { readonly cluster: KubeCluster },
  ) {
    if (API_VERSIONS.includes(plugin.apiVersion)) return;
    throw this.failed(`its "apiVersion" is ${quoted(plugin.apiVersion)}`, `use ${API_VERSIONS.join(" or ")}`);
  }

  /** Concurrent requests share one run. */
  current(): Promise<Issued> {
    if (this.issued !== undefined && this.means.now().getTime() < this.expires - EARLY_MILLISECONDS) return this.issued;
    this.expires = Number.POSITIVE_INFINITY;
    const issued = this.run();
    this.issued = issued;
    issued.then(
      ({ expires }) => {
        if (this.issued === issued) this.expires = expires ?? Number.POSITIVE_INFINITY;
      },
      () => this.forget(),
    );
    return issued;
  }

  forget(): void {
    this.issued = undefined;
  }

  private async run(): Promise<Issued> {
    const { plugin } = this;
    if (plugin.interactiveMode === "Always")
      throw this.failed('its "interactiveMode" is "Always", but there is no terminal');
    const child = this.start();
    const { promise: limit, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(this.failed(`it did not finish within ${LIMIT_MILLISECONDS} ms`));
    }, LIMIT_MILLISECONDS);
    try {
      // A grandchild may keep the pipes open after the child has ended: the limit applies to both.
      const whole = Promise.all([limitedText(child.stdout), limitedText(child.stderr), child.exited]);
      const [output, errors, exitCode] = await Promise.race([whole, limit]);
      if (exitCode !== 0) throw this.failed(`it ended with exit code ${exitCode}`, lastLine(errors));
      return this.decode(output);
    } finally {
      clearTimeout(timer);
    }
  }

  private start() {
    const { command, args, installHint } = this.plugin;
    try {
      return Bun.spawn([command, ...args], {
        env: this.environment(),
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      });
    } catch (cause) {
      const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error";
      throw this.failed(code === "ENOENT" ? "there is no such program" : code, installHint, cause);
    }
  }

  private environment(): Record<string, string> {
    const inherited = Object.entries(this.means.environment).filter(([name]) => !name.startsWith("BUN_"));
    const kept: Record<string, string> = {};
    for (const [name, value] of inherited) if (value !== undefined) kept[name] = value;
    return { ...kept, ...this.plugin.env, KUBERNETES_EXEC_INFO: JSON.stringify(this.info()) };
  }

  private info() {
    const { apiVersion, provideClusterInfo } = this.plugin;
    const { server, tlsServerName, skipsTlsVerification, certificateAuthority, proxyUrl } = this.means.cluster;
    const cluster = {
      server,
      ...(tlsServerName === undefined ? {} : { "tls-server-name": tlsServerName }),
      ...(skipsTlsVerification ? { "insecure-skip-tls-verify": true } : {}),
      ...(certificateAuthority?.kind === "data"
        ? { "certificate-authority-data": Buffer.from(certificateAuthority.pem).toString("base64") }
        : {}),
      ...(proxyUrl === undefined ? {} : { "proxy-url": proxyUrl }),
    };
    const spec = { interactive: false, ...(provideClusterInfo ? { cluster } : {}) };
    return { apiVersion, kind: "ExecCredential", spec };
  }

  private decode(output: string): Issued {
    let credential: unknown;
    try {
      credential = parseJson(output);
    } catch {
      throw this.failed("its output is not JSON");
    }
    if (!isFields(credential) || credential["kind"] !== "ExecCredential" || !isFields(credential["status"])) {
      throw this.failed("its output is not an ExecCredential with a status");
    }
    if (credential["apiVersion"] !== this.plugin.apiVersion) {
      throw this.failed(
        `its output has "apiVersion" ${quoted(credential["apiVersion"])}, not ${quoted(this.plugin.apiVersion)}`,
      );
    }
    const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = credential["status"];
    if ((typeof cert === "string") !== (typeof key === "string")) {
      throw this.failed("its output has only one of clientCertificateData and clientKeyData");
    }
    const isToken = typeof token === "string" && token !== "";
    if (!isToken && typeof cert !== "string")
      throw this.failed("its output has neither a token nor a client certificate");
    const expires = typeof expirationTimestamp === "string" ? Date.parse(expirationTimestamp) : undefined;
    if (Number.isNaN(expires)) throw this.failed('its output has an "expirationTimestamp" that is not a time');
    return {
      ...(isToken ? { token } : {}),
      ...(typeof cert === "string" && typeof key === "string" ? { cert, key } : {}),
      ...(expires === undefined ? {} : { expires }),
    };
  }

  private failed(state: string, details = "", cause?: unknown): PluginError {
    const { command, file } = this.plugin;
    const message = `Cannot get credentials from exec plugin ${quoted(command)} of kubeconfig ${quoted(file)}: ${state}`;
    return new PluginError("api-unavailable", message, { details: redact(details), cause });
  }
}

async function limitedText(stream: ReadableStream<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  let count = 0;
  for await (const piece of stream) {
    // What is beyond the limit is read and dropped: a full pipe would stop the plugin.
    if (count < MOST_OUTPUT_BYTES) pieces.push(piece);
    count += piece.length;
  }
  return Buffer.concat(pieces).toString();
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
