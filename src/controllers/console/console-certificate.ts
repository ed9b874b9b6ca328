/**
 * The certificate of the console, which has no rights to make one itself: its pod mounts the Secret. Its names are those of the
 * Service, its addresses, what `Installation.spec.console.hosts` adds, and those of this machine for `kubectl port-forward`.
 */
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { formatAddress, parseAddress } from "../../ip/address.ts";
import { onceEach } from "../../log/once-each.ts";
import { isHost } from "../../model/installation/console.ts";
import { isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import { CONSOLE, CONSOLE_HOSTS, CONSOLE_VARIABLE } from "../../release/workloads/names.ts";
import type { ServerNames } from "../../tls/x509.ts";
import { type CertificateOptions, keepCertificate } from "../tls/kept-certificate.ts";

export interface ConsoleCertificateMeans extends CertificateOptions {
  readonly signal: AbortSignal;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
}

/** The Secret and the names are compared this often. */
const COMPARE_MILLISECONDS = 15_000;
const RETRY_MILLISECONDS = 2_000;

/** Whether the console is switched on. Throws for a variable that cannot be used. */
export function hasConsole(environment: Readonly<Record<string, string | undefined>>): boolean {
  const value = environment[CONSOLE_VARIABLE] ?? "";
  if (value === "Enabled") return true;
  if (value === "" || value === "Disabled") return false;
  throw new PluginError(
    "config-invalid",
    `Cannot use the environment variable ${CONSOLE_VARIABLE}: ${quoted(value)} is not a switch; use Enabled or Disabled`,
  );
}

/** Resolves when the signal is aborted. */
export async function keepConsoleCertificate(means: ConsoleCertificateMeans): Promise<void> {
  const { namespace, isLeading, signal, wait, log } = means;
  const problems = onceEach((message) => log(message, "WARNING"));
  const certificate = {
    name: CONSOLE,
    authority: `${identity.product} console`,
    namesOf: (service: Readonly<Record<string, unknown>>) => consoleNames(namespace, service),
  };
  while (!signal.aborted) {
    let pause = RETRY_MILLISECONDS;
    try {
      if (isLeading()) {
        await keepCertificate(means, certificate);
        pause = COMPARE_MILLISECONDS;
      }
      problems.forget();
    } catch (failure) {
      if (signal.aborted) return;
      problems.report(
        `Cannot keep the certificate of the console: ${failure instanceof Error ? failure.message : failure}`,
      );
    }
    await wait(pause, signal);
  }
}

/** `service`: of the console. Pure. */
export function consoleNames(namespace: string, { metadata, spec }: Readonly<Record<string, unknown>>): ServerNames {
  const inNamespace = `${CONSOLE}.${namespace}`;
  const annotations = isObject(metadata) && isObject(metadata["annotations"]) ? metadata["annotations"] : {};
  const hosts = textOf(annotations[CONSOLE_HOSTS])
    .split(",")
    .map((host) => host.trim())
    .filter(isHost);
  const { clusterIP, clusterIPs = [clusterIP] }: Readonly<Record<string, unknown>> = isObject(spec) ? spec : {};
  const addresses = (Array.isArray(clusterIPs) ? clusterIPs : []).map(textOf).filter((each) => each !== "None");
  const further = [
    ...[CONSOLE, inNamespace, `${inNamespace}.svc.cluster.local`, "localhost", "127.0.0.1", "::1"],
    ...[...addresses, ...hosts].filter((name) => name !== "").map(canonical),
  ];
  return [`${inNamespace}.svc`, ...new Set(further)];
}

/** An address as `namesIn` spells it: otherwise the certificate would never be for it. */
function canonical(name: string): string {
  const address = parseAddress(name);
  return address === undefined ? name : formatAddress(address);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
