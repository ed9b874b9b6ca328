import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decode, MINIMAL } from "../../test/support/network-config.ts";
import { PluginError } from "../errors.ts";
import { namingFields, nodeNameFor, readNodeName, unreadableFiles } from "./config-files.ts";
import { decodeNetworkConfig } from "./decode.ts";
import { chooseNodeName } from "./node-name.ts";
import { pathText } from "./problem.ts";

const folder = mkdtempSync(join(tmpdir(), "config-files-"));
afterAll(() => rmSync(folder, { recursive: true }));

const present = join(folder, "present");
const missing = join(folder, "missing");
writeFileSync(present, "  From-File\n");

describe("chooseNodeName()", () => {
  test.each([
    [{ nodename: " Given ", fileText: "file", hostName: "host" }, "Given"],
    [{ fileText: "\tFile\n", hostName: "host" }, "File"],
    [{ nodename: "  ", fileText: " \n", hostName: " HOST.Example \n" }, "host.example"],
    [{ hostName: "Host" }, "host"],
  ])("%p", (sources, name) => {
    expect(chooseNodeName(sources)).toBe(name);
  });
});

describe("nodeNameFor()", () => {
  const asked = async (): Promise<string> => {
    throw new Error("asked for the host name");
  };

  test("does not read the host name if the config or the file has a node name", async () => {
    expect(await nodeNameFor({ command: "ADD" }, decode({ nodename: "given" }), asked)).toBe("given");
    expect(await nodeNameFor({ command: "ADD" }, decode({ nodename_file: present }), asked)).toBe("From-File");
  });

  test("uses the host name for a DEL whose file is missing, and refuses every other command", async () => {
    const config = decode({ nodename_file: missing });

    expect(await nodeNameFor({ command: "DEL" }, config, async () => "Host")).toBe("host");
    await expect(nodeNameFor({ command: "ADD" }, config, async () => "Host")).rejects.toThrow(missing);
  });
});

describe("readNodeName()", () => {
  test("prefers the config, then the file, then the host name", async () => {
    expect(await readNodeName(decode({ nodename: "given", nodename_file: missing }), async () => "Host")).toBe("given");
    expect(await readNodeName(decode({ nodename_file: present }), async () => "Host")).toBe("From-File");
    expect(
      await readNodeName(decode({ nodename_file: missing, nodename_file_optional: true }), async () => "Host"),
    ).toBe("host");
  });

  test("refuses a name that cannot be part of a key", async () => {
    const odd = join(folder, "odd");
    writeFileSync(odd, "a/b\n");
    await expect(readNodeName(decode({ nodename_file: odd }), async () => "Host")).rejects.toThrow("a/b");
  });

  test("refuses a missing file, unless it is optional", async () => {
    await expect(readNodeName(decode({ nodename_file: missing }), async () => "Host")).rejects.toThrow(missing);
    await expect(
      readNodeName(decode({ nodename_file: folder, nodename_file_optional: true }), async () => "Host"),
    ).rejects.toThrow(folder);
  });
});

describe("unreadableFiles()", () => {
  test("reports every unreadable file, also of a config with other problems", async () => {
    const { files } = decodeNetworkConfig({
      etcd_key_file: missing,
      etcd_cert_file: present,
      etcd_ca_cert_file: join(present, "below"),
      kubernetes: { kubeconfig: missing },
    });

    expect((await unreadableFiles(files)).map(({ path }) => pathText(path))).toEqual([
      "etcd_key_file",
      "etcd_ca_cert_file",
      "kubernetes.kubeconfig",
    ]);
  });

  test("ignores etcd's files if another datastore is used", async () => {
    const { files } = decodeNetworkConfig({ ...MINIMAL, datastore_type: "embedded", etcd_ca_cert_file: missing });

    expect(await unreadableFiles(files)).toEqual([]);
  });
});

describe("namingFields()", () => {
  const files = decodeNetworkConfig({ ...MINIMAL, etcd_key_file: missing, etcd_cert_file: missing }).files;

  test("reports the fields that name unreadable files", async () => {
    const failure = await namingFields(new PluginError("io-failure", "Cannot read a file"), files);

    expect(failure).toMatchObject({ kind: "config-invalid" });
    expect(String(failure)).toMatch(/"etcd_key_file".*"etcd_cert_file"/);
  });

  test("returns every other failure unchanged", async () => {
    const others = [new PluginError("datastore-unavailable", "down"), new Error("a fault"), undefined];
    for (const failure of others) expect(await namingFields(failure, files)).toBe(failure);

    const unrelated = new PluginError("io-failure", "Cannot read another file");
    expect(await namingFields(unrelated, [])).toBe(unrelated);
  });
});
