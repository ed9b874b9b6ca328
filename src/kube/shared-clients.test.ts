import { afterAll, describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import type { KubeClient } from "./api.ts";
import type { OpenKubeClient } from "./client.ts";
import { shareKubeClients } from "./shared-clients.ts";

const directory = temporaryDirectory("shared-clients");
afterAll(() => directory.remove());
const path = join(directory.path, "kubeconfig");
const access = { kubeconfigs: [path] };
const means = { environment: {}, now: () => new Date(), elapsed: () => 0, warn: () => {} };

function counting(): { readonly open: OpenKubeClient; readonly counts: { opened: number; closed: number } } {
  const counts = { opened: 0, closed: 0 };
  const client: KubeClient = {
    request: async () => ({ status: 200, text: "" }),
    watch: async function* () {},
    close: async () => {
      counts.closed += 1;
    },
  };
  const open = async () => {
    counts.opened += 1;
    if (counts.opened === 1) throw new Error("no kubeconfig");
    return client;
  };
  return { open, counts };
}

describe("shareKubeClients()", () => {
  test("opens a client again after a failure and after a change of the kubeconfig, and never closes it", async () => {
    const { open, counts } = counting();
    const share = shareKubeClients(open);

    await expect(share(access, means)).rejects.toThrow("no kubeconfig");
    for (let call = 0; call < 3; call += 1) await (await share(access, means)).close();
    expect(counts).toEqual({ opened: 2, closed: 0 });

    writeFileSync(path, "one");
    await share(access, means);
    await share({ ...access, apiRoot: "https://other" }, means);
    await share(access, means);
    expect(counts).toEqual({ opened: 4, closed: 0 });
    rmSync(path);
  });
});
