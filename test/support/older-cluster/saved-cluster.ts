/** The whole state of a cluster, to begin again from it: what its etcd has stored. Faster than to lay a cluster out again. */
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { OlderCluster } from "./older-cluster.ts";

export interface SavedCluster {
  /** The cluster is as it was when it was saved. Clients connect again by themselves. */
  restore(): Promise<void>;
}

export async function saveCluster(cluster: OlderCluster): Promise<SavedCluster> {
  const data = join(cluster.directory, "etcd");
  const copy = join(cluster.directory, `etcd-saved-${crypto.randomUUID()}`);
  const end = async () => {
    await Promise.all([cluster.controllerManager, cluster.apiServer, cluster.etcd].map((daemon) => daemon.kill()));
  };
  const start = async () => {
    await cluster.etcd.restart();
    await cluster.apiServer.restart();
    await cluster.controllerManager.restart();
  };
  await end();
  cpSync(data, copy, { recursive: true });
  await start();
  return {
    async restore() {
      await end();
      rmSync(data, { recursive: true });
      cpSync(copy, data, { recursive: true });
      await start();
    },
  };
}
