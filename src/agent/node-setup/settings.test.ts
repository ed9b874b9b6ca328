import { describe, expect, test } from "bun:test";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { readInstallSettings } from "./settings.ts";

const PREFIX = identity.environmentPrefix;
const POD = { NODE_NAME: "node-1", KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "443" };

describe("readInstallSettings()", () => {
  test("has the documented defaults", () => {
    expect(readInstallSettings(POD)).toEqual({
      nodeName: "node-1",
      namespace: "kube-system",
      pluginAccount: `${identity.product}-cni-plugin`,
      server: "https://[fd00::1]:443",
      networkConfigFile: `/etc/${identity.product}-install/config`,
      etcdSecretsDirectory: `/etc/${identity.product}-etcd-secrets`,
      binDirectory: "/opt/cni/bin",
      configDirectory: "/etc/cni/net.d",
      managesCni: true,
      defaultPools: [],
    });
  });

  const REFUSED = [
    [{ NODE_NAME: "" }, "NODE_NAME is not set"],
    [{ NODE_NAME: "a/b" }, "not a valid node name"],
    [{ KUBERNETES_SERVICE_HOST: "" }, "KUBERNETES_SERVICE_HOST"],
    [{ CNI_BIN_DIR: "bin" }, "CNI_BIN_DIR"],
    [{ ETCD_ENDPOINTS: "http://<ETCD_IP>:2379" }, "placeholder"],
    [{ [`${PREFIX}MANAGE_CNI`]: "no" }, "MANAGE_CNI"],
    [{ [`${PREFIX}DEFAULT_POOLS`]: "{}" }, "is not a list"],
    [{ [`${PREFIX}NODE_AGENT_CONFIGURATION`]: "{" }, "is not valid JSON"],
  ] as const;

  test.each(REFUSED)("refuses %p, and names the remedy", (more, message) => {
    const read = () => readInstallSettings({ ...POD, ...more });
    expect(read).toThrow(message);
    expect(read).toThrow(PluginError);
  });
});
