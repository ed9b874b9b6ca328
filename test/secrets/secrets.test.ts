/** Marked secrets in every field of the network config: no output of the executable contains one. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { decodeNetworkConfig } from "../../src/config/decode.ts";
import { networkConfigFields } from "../../src/config/schema.ts";
import { identity } from "../../src/identity.ts";
import { type Json, MINIMAL, withField } from "../support/network-config.ts";
import { ATTACHMENT_ENV, builtProgram, type PluginRun, runPlugin } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const MARK = "S3CRETMARK";
const PEM = `-----BEGIN RSA PRIVATE KEY-----\n${MARK}\n-----END RSA PRIVATE KEY-----\n`;

const SECRETS: Readonly<Record<string, unknown>> = {
  "a password in a URL": `https://root:${MARK}@10.0.0.1:2379`,
  "a password without a scheme": `root:${MARK}@10.0.0.1:2379`,
  "a private key": PEM,
  "a key in base64": btoa(PEM),
  "a bearer token": `Bearer ${MARK}`,
  "a JSON web token": `eyJhbGciOi.${MARK}.${MARK}`,
  "a list of URLs": [`https://root:${MARK}@10.0.0.1:2379`],
  "an object": { password: MARK, token: MARK },
};

const directory = temporaryDirectory("secrets");
afterAll(() => directory.remove());
const OWN_RUN_DIRECTORY = { [`${identity.environmentPrefix}RUN_DIRECTORY`]: directory.path };

const fields = Object.entries(networkConfigFields()).flatMap(([name, field]) =>
  field.kind === "section" ? Object.keys(field.fields).map((inner) => `${name}.${inner}`) : [name],
);

/** One config for each field, and two for unknown keys. */
async function configsWith(secret: unknown): Promise<readonly string[]> {
  const configs = [...fields, "unknown_key", "policy.k8s_auth_token"].map((field) => withField(field, secret));
  return Promise.all(
    configs.map(async (config, place) => {
      const file = join(directory.path, `${place}.conf`);
      await Bun.write(file, JSON.stringify(config));
      return file;
    }),
  );
}

/** The lines that contain the mark, as text or in base64. */
function leaksOf(run: PluginRun): readonly string[] {
  const lines = `${run.stdout}\n${run.stderr}`.split("\n");
  return lines.filter((line) => line.includes(MARK) || line.includes(btoa(PEM).slice(0, 40)));
}

describe("the admin tool", () => {
  test.each(Object.entries(SECRETS))("checks configs without revealing %s", async (_, secret) => {
    const files = await configsWith(secret);
    for (const args of [[], ["--effective"], ["-o", "json"], ["--effective", "-o", "json"]]) {
      const run = await runPlugin(builtProgram(identity.adminTool), { args: ["config", "check", ...args, ...files] });

      expect(run.stdout).toContain(".conf");
      expect(leaksOf(run)).toEqual([]);
    }
  });
});

/** The secret in every field, and in every field that accepts it: a config that is refused, and one that is used. */
function configsFullOf(secret: unknown): readonly Json[] {
  const filled = (fieldsToFill: readonly string[]): Json => {
    const config: Record<string, unknown> = { ...MINIMAL };
    for (const field of fieldsToFill) {
      const [outer = "", inner] = field.split(".");
      config[outer] = inner === undefined ? secret : { ...Object(config[outer]), [inner]: secret };
    }
    return config;
  };
  const passing = fields.filter((field) => decodeNetworkConfig(withField(field, secret)).ok);
  return [filled(fields), filled(passing.filter((field) => !KEPT.has(field)))];
}

/** Fields that a used config needs unchanged: with a secret there the call would not get as far as the log. */
const KEPT = new Set(["type", "ipam.type", "datastore_type", "datastore_path", "nodename_file"]);

describe.each([identity.product, identity.ipamType])("the plugin %s", (name) => {
  test.each(Object.entries(SECRETS))("neither prints nor logs %s", async (_, secret) => {
    const log = join(directory.path, `${name}.log`);
    const good = {
      name: "net",
      cniVersion: "1.0.0",
      datastore_type: "embedded",
      datastore_path: join(directory.path, "store.sqlite"),
      log_file_path: log,
      log_level: "DEBUG",
      unknown_key: secret,
    };
    const [refused = {}, used = {}] = configsFullOf(secret);
    const broken = JSON.stringify(refused).slice(0, -9);
    for (const stdin of [refused, { ...refused, ...good }, { ...used, ...good }, broken]) {
      for (const CNI_COMMAND of ["ADD", "DEL", "CHECK"]) {
        const env = {
          ...ATTACHMENT_ENV,
          CNI_COMMAND,
          CNI_ARGS: `IgnoreUnknown=1;K8S_TOKEN=${MARK}`,
          ...OWN_RUN_DIRECTORY,
        };

        expect(leaksOf(await runPlugin(builtProgram(name), { env, stdin }))).toEqual([]);
      }
    }
    const logged = readFileSync(log, "utf8");
    expect(logged).toContain("unknown_key");
    expect(leaksOf({ exitCode: 0, stdout: logged, stderr: "" })).toEqual([]);
  });
});
