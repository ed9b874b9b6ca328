/** What the duties of a host need from it and from outside it, whoever does them: the agent, or a command of the admin tool. */
import type { KubeAccess } from "../config/kube-access.ts";
import type { Address, Family } from "../ip/address.ts";
import type { KubeClient } from "../kube/api.ts";
import type { HostAddress } from "../linux/rtnetlink/host-addresses.ts";

export interface HostMeans {
  readonly signal: AbortSignal;
  hostName(): Promise<string>;
  /** Identity of this machine; an ID is generated if it has none. */
  machineIdentity(): Promise<string>;
  hostAddresses(): Promise<readonly HostAddress[]>;
  /** The source address of packets to an address or a name; `undefined` if there is no route, or no such name. */
  readonly sourceTowards: (destination: string, family: Family) => Promise<Address | undefined>;
  openKubeClient(access: KubeAccess): Promise<KubeClient>;
  now(): Date;
  uuid(): string;
  warn(message: string): void;
}
