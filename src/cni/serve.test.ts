import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ForeignError, PluginError } from "../errors.ts";
import { EMPTY_RESULT } from "./result.ts";
import { type CniPlugin, type CniProcess, serve } from "./serve.ts";
import { CNI_VERSIONS } from "./version.ts";

const ENV = { CNI_CONTAINERID: "c1", CNI_NETNS: "/run/netns/x", CNI_IFNAME: "eth0", CNI_PATH: "/opt/cni/bin" };
const CONFIG = { cniVersion: "1.1.0", name: "net", type: "spy" };

function processWith(command: string, more: Partial<CniProcess> & { config?: unknown } = {}): CniProcess {
  const { config = CONFIG, ...rest } = more;
  const stdin = Buffer.from(typeof config === "string" ? config : JSON.stringify(config));
  return {
    env: { ...ENV, CNI_COMMAND: command },
    readStdin: async () => stdin,
    isOwnNetns: async () => false,
    signal: new AbortController().signal,
    ...rest,
  };
}

function pluginWith(more: Partial<CniPlugin> = {}): CniPlugin {
  return {
    about: "Spy plugin",
    supportedVersions: CNI_VERSIONS,
    add: async () => ({ ...EMPTY_RESULT, ips: [{ address: "10.0.0.2/32" }] }),
    del: async () => {},
    check: async () => {},
    gc: async () => {},
    status: async () => {},
    ...more,
  };
}

async function errorOf(process: CniProcess, plugin: CniPlugin) {
  const reply = await serve(process, plugin);
  expect(reply.exitCode).toBe(1);
  return JSON.parse(reply.stdout);
}

describe("serve()", () => {
  test("returns the result of ADD in the version of the config", async () => {
    const reply = await serve(processWith("ADD", { config: { ...CONFIG, cniVersion: "0.2.0" } }), pluginWith());

    expect(reply.exitCode).toBe(0);
    expect(JSON.parse(reply.stdout)).toEqual({ cniVersion: "0.2.0", ip4: { ip: "10.0.0.2/32" }, dns: {} });
  });

  test.each(["DEL", "CHECK", "GC", "STATUS"])("prints nothing for a successful %s", async (command) => {
    expect(await serve(processWith(command), pluginWith())).toEqual({ exitCode: 0, stdout: "", stderr: "" });
  });

  test("passes a typed error on with its code, details and the caller's version", async () => {
    const add = async () => {
      throw new PluginError("try-again-later", "Cannot do it: not now", { details: "later" });
    };

    expect(await errorOf(processWith("ADD"), pluginWith({ add }))).toEqual({
      cniVersion: "1.1.0",
      code: 11,
      msg: "Cannot do it: not now",
      details: "later",
    });
  });

  test("passes a delegate's error on with the code it had", async () => {
    const del = async () => {
      throw new ForeignError(777, "theirs");
    };

    expect(await errorOf(processWith("DEL"), pluginWith({ del }))).toMatchObject({ code: 777, msg: "theirs" });
  });

  test.each([new TypeError("x is not a function"), "text", undefined, null, { odd: 1 }])(
    "returns code 999 for anything else that was thrown (%p)",
    async (thrown) => {
      const add = async () => {
        throw thrown;
      };

      expect(await errorOf(processWith("ADD"), pluginWith({ add }))).toMatchObject({ code: 999 });
    },
  );

  test("shows no secret of any error", async () => {
    const add = async () => {
      throw new ForeignError(5, "cannot reach https://user:hunter2@host", "Bearer hunter3");
    };
    const { stdout } = await serve(processWith("ADD"), pluginWith({ add }));

    expect(stdout).not.toContain("hunter");
  });

  test.each(["not found", "no such file or directory"])(
    "never says %p in an error of DEL: containerd would ignore the error, and what is left would leak",
    async (words) => {
      const fail = async () => {
        throw new PluginError("io-failure", `Cannot get it: ${words}`, { details: `role ${words}` });
      };
      const plugin = pluginWith({ add: fail, del: fail });

      const { msg, details, code } = await errorOf(processWith("DEL"), plugin);
      expect([msg, details].filter((text) => text.includes(words))).toEqual([]);
      expect(msg).toStartWith("Cannot get it: ");
      expect(code).toBe(5);
      expect((await errorOf(processWith("ADD"), plugin)).msg).toContain(words);
    },
  );

  test("prints exactly one JSON error for any bytes on stdin", async () => {
    const jsonOrNot = fc.oneof(
      fc.uint8Array(),
      fc.json().map((text) => new Uint8Array(Buffer.from(text))),
      fc.string().map((text) => new Uint8Array(Buffer.from(`{"name":${JSON.stringify(text)},"cniVersion":"7"}`))),
    );
    await fc.assert(
      fc.asyncProperty(
        jsonOrNot,
        fc.constantFrom("ADD", "DEL", "CHECK", "GC", "STATUS", "FOO"),
        async (stdin, command) => {
          const reply = await serve(processWith(command, { readStdin: async () => stdin }), pluginWith());
          expect(reply.exitCode).toBe(1);
          expect(JSON.parse(reply.stdout)).toMatchObject({ code: expect.any(Number), msg: expect.any(String) });
        },
      ),
      { numRuns: 500 },
    );
  });

  test("returns code 5 for unreadable stdin", async () => {
    const readStdin = async () => {
      throw new Error("EIO");
    };

    expect(await errorOf(processWith("ADD", { readStdin }), pluginWith())).toMatchObject({ code: 5 });
  });

  test("reports a failure after a stop signal as interrupted, whatever the handler threw", async () => {
    const add = async () => {
      throw new Error("aborted half way");
    };
    const signal = AbortSignal.abort();

    expect(await errorOf(processWith("ADD", { signal }), pluginWith({ add }))).toMatchObject({
      code: 111,
      details: "aborted half way",
    });
  });

  test("returns a success that came after a stop signal", async () => {
    expect((await serve(processWith("ADD", { signal: AbortSignal.abort() }), pluginWith())).exitCode).toBe(0);
  });
});

describe("serve(), own network namespace", () => {
  const refusedBeforeActing = () => {
    const acted: string[] = [];
    const plugin = pluginWith({
      add: async () => {
        acted.push("ADD");
        return EMPTY_RESULT;
      },
      del: async () => {
        acted.push("DEL");
      },
    });
    return { acted, plugin };
  };

  test.each(["ADD", "DEL"])("refuses %s before acting", async (command) => {
    const { acted, plugin } = refusedBeforeActing();

    expect(await errorOf(processWith(command, { isOwnNetns: async () => true }), plugin)).toMatchObject({ code: 8 });
    expect(acted).toEqual([]);
  });

  test.each(["1", "true", "TRUE"])("accepts it when CNI_NETNS_OVERRIDE is %s", async (override) => {
    const env = { ...ENV, CNI_COMMAND: "ADD", CNI_NETNS_OVERRIDE: override };
    const { acted, plugin } = refusedBeforeActing();

    expect((await serve(processWith("ADD", { env, isOwnNetns: async () => true }), plugin)).exitCode).toBe(0);
    expect(acted).toEqual(["ADD"]);
  });

  test("is not checked for a plugin that does not require CNI_NETNS", async () => {
    const plugin = pluginWith({ requiredVariables: ["CNI_CONTAINERID"] });
    const env = { CNI_COMMAND: "ADD", CNI_CONTAINERID: "c1", CNI_NETNS: "/proc/self/ns/net" };

    expect((await serve(processWith("ADD", { env, isOwnNetns: async () => true }), plugin)).exitCode).toBe(0);
  });
});

describe("serve(), VERSION", () => {
  test("prints the newest version and all supported ones", async () => {
    const reply = await serve(processWith("VERSION"), pluginWith());

    expect(JSON.parse(reply.stdout)).toEqual({ cniVersion: "1.1.0", supportedVersions: [...CNI_VERSIONS] });
  });

  test("never reads stdin", async () => {
    const readStdin = () => Promise.reject(new Error("was read"));

    expect((await serve(processWith("VERSION", { readStdin }), pluginWith())).exitCode).toBe(0);
  });

  test("prints the newest version of the plugin, not of the protocol", async () => {
    const plugin = pluginWith({ supportedVersions: ["0.3.0", "0.3.1"] });

    expect(JSON.parse((await serve(processWith("VERSION"), plugin)).stdout).cniVersion).toBe("0.3.1");
  });
});
