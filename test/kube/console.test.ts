/** How the console is installed, on a real API server: its certificate, by the controllers with their own roles, and its rights. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { consoleManifestObjects } from "../../src/release/manifests/variants.ts";
import { roleName } from "../../src/release/roles/role-files.ts";
import { certificateRules } from "../../src/release/roles/rules.ts";
import { CONSOLE, CONSOLE_HOSTS, TLS_KEYS } from "../../src/release/workloads/names.ts";
import { namesIn } from "../../src/tls/x509.ts";
import { type Controllers, startControllers } from "../support/controllers.ts";
import { freePorts } from "../support/etcd.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import type { Audit } from "../support/kube-audit.ts";
import { installCrds } from "../support/kube-crds.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { isForbidden, needs } from "../support/role-use.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);
const NAMESPACE = "kube-system";
const ROLE = "controllers-kubernetes";
const CONTROLLERS = `system:serviceaccount:${NAMESPACE}:${identity.controllers}`;

let server: ApiServer;
let audit: Audit;
let controllers: Controllers;

beforeAll(async () => {
  if (problem !== undefined) return;
  server = await startApiServer();
  audit = server.startAudit();
  await installCrds(server);
  await server.apply(
    await Bun.file(join(import.meta.dir, `../../deploy/rbac/${roleName(ROLE, identity)}.yaml`)).text(),
  );
  for (const object of consoleManifestObjects("kubernetes", "v1.2.3")) await server.apply(JSON.stringify(object));
  const token = await server.kubectl(["create", "token", identity.controllers, `--namespace=${NAMESPACE}`]);
  const [healthPort = 0] = await freePorts(1);
  controllers = startControllers({
    ...{ KUBECONFIG: server.credentials.writeKubeconfig("controllers", { token: token.trim() }) },
    ...{ DATASTORE_TYPE: "kubernetes", HEALTH_PORT: `${healthPort}`, CONSOLE: "Enabled" },
  });
}, 120_000);
afterAll(async () => {
  await controllers?.kill();
  await server?.stop();
});

interface Held {
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: { readonly clusterIP: string };
  readonly metadata: { readonly uid: string; readonly ownerReferences?: readonly { readonly uid: string }[] };
}

function read(kind: "secret" | "configmap" | "service"): Promise<Held> {
  return server.get<Held>(kind, CONSOLE, `--namespace=${NAMESPACE}`);
}

async function certificate(): Promise<string> {
  const { data } = await read("secret").catch((): Partial<Held> => ({}));
  return Buffer.from(data?.[TLS_KEYS.certificate] ?? "", "base64").toString();
}

async function untilNamed(name: string): Promise<string> {
  const isNamed = async () => {
    const text = await certificate();
    return text !== "" && namesIn(text).includes(name);
  };
  await pollUntil(isNamed, `a certificate for ${name}; log of the controllers:\n${controllers.log()}`);
  return certificate();
}

describe("the certificate of the console", () => {
  testServer(
    "is made by the controllers, for the Service and its address, and deleted with it",
    async () => {
      const service = await read("service");
      const made = await untilNamed(service.spec?.clusterIP ?? expect.unreachable());
      expect(namesIn(made)).toContain(`${CONSOLE}.${NAMESPACE}.svc`);
      expect(namesIn(made)).toContain("localhost");
      const published = (await read("configmap")).data?.[TLS_KEYS.authorities] ?? "";
      expect(new X509Certificate(made).verify(new X509Certificate(published).publicKey)).toBe(true);
      expect(published).not.toContain("PRIVATE KEY");
      for (const kind of ["secret", "configmap"] as const)
        expect((await read(kind)).metadata.ownerReferences?.map(({ uid }) => uid)).toEqual([service.metadata.uid]);
    },
    60_000,
  );

  testServer(
    "is made again for the hosts of the Service, while the controllers run",
    async () => {
      const annotate = (value: string) =>
        server.kubectl(["annotate", "--overwrite", `--namespace=${NAMESPACE}`, "service", CONSOLE, value]);
      await annotate(`${CONSOLE_HOSTS}=console.example.org,fd00:0::7`);
      const made = await untilNamed("console.example.org");
      expect(namesIn(made)).toContain("fd00::7");
      // It is for what was asked: nothing is written again.
      const writes = () =>
        audit.requests(CONTROLLERS).filter(({ verb, resource }) => verb === "patch" && resource === "secrets");
      expect(writes()).toHaveLength(2);
      await annotate(`${CONSOLE_HOSTS}=`);
      await pollUntil(async () => !namesIn(await certificate()).includes("fd00::7"), "a certificate without the hosts");
      expect(writes()).toHaveLength(3);
    },
    90_000,
  );

  testServer("needs each permission of its role, and no other Secret", async () => {
    const asked = audit.requests(CONTROLLERS);
    const unused = certificateRules(CONSOLE).flatMap(({ resources, verbs }) =>
      // A server-side apply that creates an object is audited as a patch, and needs both permissions.
      verbs
        .filter((verb) => verb !== "create")
        .flatMap((verb) => resources.map((resource) => ({ group: "", resource, verb })))
        .filter((permission) => !asked.some((request) => needs(request, permission))),
    );
    expect(unused).toEqual([]);
    expect(asked.filter(isForbidden).map(({ verb, uri }) => `${verb} ${uri}`)).toEqual([]);
    const may = (what: string) =>
      server.kubectl(["auth", "can-i", ...what.split(" "), `--namespace=${NAMESPACE}`, `--as=${CONTROLLERS}`]).then(
        () => true,
        () => false,
      );
    expect(await may(`get secrets/${CONSOLE}`)).toBe(true);
    expect([await may("get secrets/other"), await may("list secrets")]).toEqual([false, false]);
  });
});

describe("the account of the console", () => {
  testServer("may do what every account may, and nothing else", async () => {
    const rights = (name: string) =>
      server.kubectl([
        "auth",
        "can-i",
        "--list",
        `--namespace=${NAMESPACE}`,
        `--as=system:serviceaccount:${NAMESPACE}:${name}`,
      ]);
    expect(await rights(CONSOLE)).toBe(await rights("stranger"));
    expect(await rights(CONSOLE)).not.toContain(identity.apiGroup);
  });
});
