import { describe, expect, test } from "bun:test";
import type { KubeClient, KubeRequest } from "../kube/api.ts";
import { deleteInstallations } from "./request-deletion.ts";

/** `answers`: how often `default` is still there. */
function cluster(answers: number) {
  const requests: string[] = [];
  let left = answers;
  const client: Pick<KubeClient, "request"> = {
    async request({ method, path }: KubeRequest) {
      requests.push(`${method} ${path.split("/").at(-1)}`);
      const conditions = [{ type: "Ready", status: "False", message: `${left} left` }];
      const isGone = method === "GET" && left-- <= 0;
      return { status: isGone ? 404 : 200, text: JSON.stringify({ status: { conditions } }) };
    },
  };
  return { client, requests };
}

describe("deleteInstallations()", () => {
  test("waits for default, then deletes the overlay, which the removal uses too", async () => {
    const { client, requests } = cluster(2);
    const said: string[] = [];
    const signal = new AbortController().signal;

    expect(await deleteInstallations({ client, signal, wait: async () => {}, log: (text) => said.push(text) })).toBe(
      true,
    );
    expect(requests).toEqual(["DELETE default", "GET default", "GET default", "GET default", "DELETE overlay"]);
    expect(said).toContain("waiting for the operator: 1 left");
  });

  test("ends when it is told to, and says that the Installation is still there", async () => {
    const { client, requests } = cluster(1000);
    const stop = new AbortController();
    const options = { client, signal: stop.signal, wait: async () => stop.abort(), log: () => {} };

    expect(await deleteInstallations(options)).toBe(false);
    expect(requests).toEqual(["DELETE default", "GET default"]);
  });
});
