import { describe, expect, test } from "bun:test";
import { BAD_INPUTS } from "../../test/support/bad-inputs.ts";
import { MARK, PLACES_FOR_SECRETS, VALUES_WITH_SECRETS } from "../../test/support/marked-secrets.ts";
import { withField } from "../../test/support/network-config.ts";
import { identity } from "../identity.ts";
import { checkNetworkFile } from "./network-file.ts";

describe("checkNetworkFile()", () => {
  test("is tried with at least thirty bad inputs", () => {
    expect(BAD_INPUTS.length).toBeGreaterThanOrEqual(30);
  });

  test.each([...BAD_INPUTS])("reports $wrong", async ({ text, path, says }) => {
    const { findings } = await checkNetworkFile(text, { looksForFiles: true });
    const errors = findings.filter(({ severity }) => severity === "error");

    expect(errors.map((finding) => finding.path)).toEqual([path]);
    for (const words of says) expect(errors[0]?.message).toContain(words);
    expect(JSON.stringify(findings)).not.toContain("secret");
  });

  test("reports all problems of the list at once, and those of our plugin in it", async () => {
    const list = {
      name: "a b",
      cniVersion: "0.2.0",
      disableCheck: "maybe",
      plugins: [{ type: identity.product, num_queues: -1 }, { type: 5, capabilities: [] }, "x", {}],
    };
    const { findings } = await checkNetworkFile(JSON.stringify(list, undefined, 1), { looksForFiles: true });

    expect(findings.map(({ path }) => path)).toEqual([
      "name",
      "cniVersion",
      "disableCheck",
      "plugins[0].ipam",
      "plugins[0].num_queues",
      "plugins[1].type",
      "plugins[1].capabilities",
      "plugins[2]",
      "plugins[3].type",
      "plugins[3].ipam",
    ]);
  });

  test("warns about a field that is given more than once", async () => {
    const text = JSON.stringify(withField("mtu", 1400)).replace("{", '{"mtu":1500,');
    const { findings } = await checkNetworkFile(text, { looksForFiles: true });

    expect(findings).toMatchObject([{ severity: "warning", path: "mtu" }]);
  });

  test("reports a policy type without access to the orchestrator's API, except for containers of one host", async () => {
    const policy = { type: "k8s" };
    const errorsOf = async (more: object) => {
      const config = { ...withField("policy", policy), ...more };
      const { findings } = await checkNetworkFile(JSON.stringify(config), { looksForFiles: false });
      return findings.filter(({ severity }) => severity === "error").map(({ path, message }) => ({ path, message }));
    };

    const refused = [{ path: "policy.type", message: expect.stringContaining('set "kubernetes.kubeconfig"') }];
    expect(await errorsOf({})).toEqual(refused);
    expect(await errorsOf({ datastore_type: "etcdv3" })).toEqual(refused);
    expect(await errorsOf({ datastore_type: "embedded" })).toEqual([]);
    expect(await errorsOf({ kubernetes: { kubeconfig: "/etc/kubeconfig" } })).toEqual([]);
    expect(await errorsOf({ policy: { ...policy, k8s_api_root: "https://192.0.2.1:6443" } })).toEqual([]);
  });

  test.each(PLACES_FOR_SECRETS)("shows no secret of %s, in a config or in a list", async (field) => {
    for (const value of VALUES_WITH_SECRETS) {
      const config = withField(field, value);
      for (const file of [config, { name: "pods", cniVersion: "1.0.0", plugins: [config], more: value }]) {
        const report = await checkNetworkFile(JSON.stringify(file), { looksForFiles: true });
        expect(JSON.stringify(report)).not.toContain(MARK);
      }
    }
  });
});
