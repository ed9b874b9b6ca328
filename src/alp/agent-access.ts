/** What application layer policy needs of the node agent that it is part of: the agent has more. */
import type { Environment } from "../cni/environment.ts";
import type { DatastoreSettings } from "../config/datastore-settings.ts";
import type { KubeAccess } from "../config/kube-access.ts";
import type { Datastore } from "../datastore/datastore.ts";
import type { KubeClient } from "../kube/api.ts";
import type { SocketOpener } from "../linux/netlink-socket.ts";
import type { LogLevel } from "../log/line.ts";
import type { PolicyCompiler } from "../policy/compile/compiler.ts";
import type { ReportingSidecars } from "../policy/compile/sidecar-interfaces.ts";

export interface AgentAccess {
  readonly environment: Environment;
  readonly say: (message: string, fields?: Readonly<Record<string, string>>, level?: LogLevel) => void;
}

/** Resolves early if the signal is aborted. */
export type Wait = (milliseconds: number, signal: AbortSignal) => Promise<void>;

/** The agent runs it until the signal is aborted, and again if it fails. */
export interface SupervisedPart {
  /** As shown in the log. */
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

/** The enforcement of network policy on this node, with one datastore. */
export interface Enforcement {
  readonly means: {
    readonly kernel: SocketOpener;
    readonly clock: { readonly elapsed: () => number; readonly wait: Wait };
    openKubeClient(access: KubeAccess, warn: (message: string) => void): Promise<KubeClient>;
  };
  readonly network: { readonly settings: DatastoreSettings };
  readonly store: Datastore;
  readonly log: (message: string, level: "WARNING") => void;
  readonly compiler: PolicyCompiler;
  /** Writes the table of the kernel if that changes it. */
  readonly keeper: { updateSidecars(reporting: ReportingSidecars): void };
}
