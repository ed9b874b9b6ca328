/**
 * The targets of the Makefile that install only some of the programs, and which. The gate fails if one of them starts
 * another program that a bare Debian lacks (`not-installed.ts`).
 */
import type { Program } from "./table.ts";

export interface Target {
  /** The file that runs once its programs are installed. */
  readonly entry: string;
  readonly programs: readonly Program[];
  /** Files whose programs it does not start, or only if they are present. */
  readonly besides?: readonly string[];
}

/** Containers are the pods of the demo if podman is present. */
const PODMAN = "test/support/podman.ts";
const ETCD_ON_HOST = "test/support/etcd-on-host.ts";

export const TARGETS = {
  "make build": { entry: "scripts/build.ts", programs: [] },
  // It stops the agent if systemd runs.
  "make install": { entry: "scripts/install.ts", programs: [], besides: ["scripts/install/host-network.ts"] },
  "make deb": { entry: "scripts/deb.ts", programs: ["dpkg-deb", "tar"] },
  "make image": { entry: "scripts/image.ts", programs: ["dpkg-deb", "tar"] },
  "make release": { entry: "scripts/release.ts", programs: ["dpkg-deb", "tar"] },
  "make demo": { entry: "scripts/demo/steps.ts", programs: ["ip", "ping"], besides: [PODMAN, ETCD_ON_HOST] },
  "make demo DATASTORE=etcd": {
    entry: "scripts/demo/steps.ts",
    programs: ["ip", "ping", "etcd", "busybox"],
    besides: [PODMAN],
  },
  "make demo CLUSTER=1": {
    entry: "scripts/demo/cluster/worker.process.ts",
    programs: ["ip", "nft", "busybox", "containerd", "ctr", "runc", "openssl", "curl", "kill", "setpriv"],
    // It uses the etcd and the programs that test/parts builds, no wheel and no kernel.
    besides: ["test/support/etcd.ts", "test/parts/wheel.ts", "test/parts/kernel.ts"],
  },
} as const satisfies Readonly<Record<string, Target>>;
