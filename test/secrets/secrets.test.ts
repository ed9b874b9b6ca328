/** Marked secrets in every field of the network config: nothing the executable prints holds one. */
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { networkConfigFields } from "../../src/config/schema.ts";
import { identity } from "../../src/identity.ts";
import { withField } from "../support/network-config.ts";
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

const fields = Object.entries(networkConfigFields()).flatMap(([name, field]) =>
  field.kind === "section" ? Object.keys(field.fields).map((inner) => `${name}.${inner}`) : [name],
);

/** One config for each field, and two for keys that nobody knows. */
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

/** The lines in which the mark, or its form in base64, shows. */
function leaksOf(run: PluginRun): readonly string[] {
  const lines = `${run.stdout}\n${run.stderr}`.split("\n");
  return lines.filter((line) => line.includes(MARK) || line.includes(btoa(PEM).slice(0, 40)));
}

describe("the admin tool", () => {
  test.each(Object.entries(SECRETS))("checks configs without telling %s", async (_, secret) => {
    const files = await configsWith(secret);
    for (const args of [[], ["--effective"], ["-o", "json"], ["--effective", "-o", "json"]]) {
      const run = await runPlugin(builtProgram(identity.adminTool), { args: ["config", "check", ...args, ...files] });

      expect(run.stdout).toContain(".conf");
      expect(leaksOf(run)).toEqual([]);
    }
  });
});

describe("the plugin", () => {
  test.each(Object.entries(SECRETS))("answers without telling %s", async (_, secret) => {
    const everywhere: Record<string, unknown> = {};
    for (const field of fields) {
      const [outer = "", inner] = field.split(".");
      everywhere[outer] = inner === undefined ? secret : { ...Object(everywhere[outer]), [inner]: secret };
    }
    const good = { name: "net", cniVersion: "1.0.0", type: identity.product };
    for (const stdin of [{ ...everywhere, ...good }, everywhere, JSON.stringify(everywhere).slice(0, -9)]) {
      for (const CNI_COMMAND of ["ADD", "DEL", "CHECK"]) {
        const env = { ...ATTACHMENT_ENV, CNI_COMMAND, CNI_ARGS: `K8S_TOKEN=${MARK}` };

        expect(leaksOf(await runPlugin(builtProgram(), { env, stdin }))).toEqual([]);
      }
    }
  });
});
