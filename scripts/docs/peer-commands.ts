/**
 * What users of calicoctl type, and what it is here: the source of a table in
 * docs/vendorctl.md. A test checks that every command and option of ours exists.
 */
export interface PeerCommand {
  /** Without the name of the tool. */
  readonly theirs: string;
  /** Several are separated by ", "; absent if there is none. */
  readonly ours?: string;
  readonly differs: string;
}

const SAME = "the same";

export const PEER_COMMANDS: readonly PeerCommand[] = [
  {
    theirs: "-l LEVEL",
    ours: "--log-level LEVEL",
    differs:
      "`-l` is the level only before the command; after it, it is kubectl's selector. Levels above `debug` print the same",
  },
  { theirs: "--context NAME", ours: "get --context NAME", differs: SAME },
  {
    theirs: "-c FILE, --config FILE",
    ours: "get --config FILE, get -c FILE",
    differs: "file and environment combine: each setting is taken from its option, then its variable, then the file",
  },
  {
    theirs: "--allow-version-mismatch",
    ours: "get --allow-version-mismatch",
    differs:
      "only a tool that is older than the cluster is refused; a newer one warns. An unreadable version is no obstacle",
  },
  { theirs: "exit code 1", differs: "2 for wrong usage, 130 and 143 after a signal" },
  { theirs: "-f FILE, -f DIRECTORY, -f -", ours: "apply -f FILE", differs: "can be repeated" },
  { theirs: "-R, --recursive", ours: "apply -R", differs: SAME },
  { theirs: "--skip-empty", ours: "apply --skip-empty", differs: SAME },
  {
    theirs: "-n NAMESPACE, --namespace NAMESPACE",
    ours: "get -n NAMESPACE",
    differs: "ignored for kinds without namespaces, as in kubectl",
  },
  {
    theirs: "create --skip-exists",
    ours: "create --skip-exists",
    differs: "the resource is reported as `already exists`",
  },
  {
    theirs: "apply",
    ours: "apply",
    differs:
      "all documents are checked before anything is written; labels and annotations that a document does not mention are kept",
  },
  {
    theirs: "create, apply: initialise the datastore",
    ours: "datastore init",
    differs: "a command of its own, which the node agent runs too",
  },
  { theirs: "replace", ours: "replace", differs: "goes on after a resource that cannot be replaced" },
  {
    theirs: "delete -s, --skip-not-exists",
    ours: "delete -s, delete --skip-not-exists",
    differs: "also `--ignore-not-found`, as in kubectl; what is in use is deleted only with `--force`",
  },
  { theirs: "get", ours: "get", differs: "messages name each resource (`ippool/blue created`), not their number" },
  {
    theirs: "get -o ps, -o wide",
    ours: "get -o ps, get -o wide",
    differs: "columns as in kubectl, with AGE; some have other headings",
  },
  {
    theirs: "get -o yaml, -o json",
    ours: "get -o yaml, get -o json",
    differs: "a list is an object of kind `…List`, as in kubectl",
  },
  {
    theirs: "get -o custom-columns=A,B",
    ours: "get -o custom-columns=NAME,CIDR",
    differs: "also kubectl's `HEADER:PATH`; names are those of the wide table, and most of calicoctl's",
  },
  {
    theirs: "get -o go-template=…, -o go-template-file=…",
    differs: "refused: use `-o jsonpath=…` or `-o custom-columns=…`",
  },
  { theirs: "get -A, --all-namespaces", ours: "get -A", differs: SAME },
  { theirs: "get --export", ours: "get --export", differs: SAME },
  {
    theirs: "patch -p PATCH, -t TYPE",
    ours: "patch -p PATCH, patch -t strategic",
    differs:
      "the default is `merge`; `json` and `merge` work too. `strategic` replaces lists, since these kinds have no merge keys",
  },
  {
    theirs: "label KEY=VALUE --overwrite, label KEY --remove",
    ours: "label --overwrite, label --remove",
    differs: "also kubectl's `KEY-`",
  },
  {
    theirs: "convert -f FILE --ignore-validation",
    ours: "convert -f FILE, convert --ignore-validation",
    differs:
      "resources of the v1 API are not converted. A converted NetworkPolicy keeps its name, without the prefix `knp.default.`",
  },
  {
    theirs: "validate -f FILE",
    ours: "validate -f FILE",
    differs: "also finds what two of the resources make wrong together",
  },
  { theirs: "ipam show --ip=IP", ours: "ipam show --ip IP", differs: "also shows pool, block and reservation" },
  {
    theirs: "ipam show --show-blocks",
    ours: "ipam show --show-blocks",
    differs: "other columns, with a bar; `--map` draws them",
  },
  { theirs: "ipam show --show-borrowed", ours: "ipam show --show-borrowed", differs: SAME },
  { theirs: "ipam show --show-configuration", ours: "ipam show --show-configuration", differs: SAME },
  {
    theirs: "ipam check --show-all-ips, --show-problem-ips",
    ours: "ipam check --show-all-ips, ipam check --show-problem-ips",
    differs: "findings are always printed; these add a table of addresses. The exit code is 1 if there is a problem",
  },
  {
    theirs: "ipam check -o FILE",
    ours: "ipam check --report FILE",
    differs: "`-o` is the format of the output, as in kubectl",
  },
  {
    theirs: "ipam release --ip=IP",
    ours: "ipam release --ip IP",
    differs: "an address that an endpoint names needs `--force`",
  },
  {
    theirs: "ipam release --from-report=FILE [--force]",
    ours: "ipam release --from-report FILE, ipam release --force",
    differs: "the same guards; an address in use, or assigned again since the report, is kept in any case",
  },
  {
    theirs: "ipam configure --strictaffinity=BOOLEAN",
    ours: "ipam configure --strictaffinity true",
    differs: "also `--strict-affinity`",
  },
  {
    theirs: "ipam split NUMBER --cidr=CIDR, --name=NAME",
    ours: "ipam split --cidr CIDR, ipam split --name NAME",
    differs: "goes on where it was stopped; `--dry-run`",
  },
  { theirs: "node status", ours: "node status", differs: "also the routes, and why BIRD does not run" },
  {
    theirs: "node run",
    ours: "node run",
    differs: "refused: systemd or the cluster starts the node agent. `node register` sets addresses",
  },
  {
    theirs: "node diags --log-dir=DIRECTORY",
    ours: "node diags --log-dir DIRECTORY",
    differs: "written to the current directory, or to `--archive`; without secrets",
  },
  {
    theirs: "node checksystem --kernel-config=FILE",
    ours: "node checksystem --kernel-config FILE",
    differs: "the kernel is asked, not a list of modules; the file is not read",
  },
  {
    theirs: "cluster diags --since --max-logs --max-parallelism --focus-nodes",
    ours: "cluster diags --since 1h, cluster diags --max-logs 5, cluster diags --max-parallelism 10, cluster diags --focus-nodes a",
    differs: "the archive is written to the current directory, or to `--archive`; without secrets",
  },
  {
    theirs: "cluster diags --skip-temp-dir-cleanup",
    ours: "cluster diags --skip-temp-dir-cleanup",
    differs: "no effect: there is no temporary directory",
  },
  {
    theirs: "version --poll=DURATION",
    ours: "version --poll 10s",
    differs: "also names the nodes that hold the version back; without the commit of the build",
  },
  {
    theirs: "datastore migrate lock, export, import, unlock",
    ours: "datastore migrate lock, datastore migrate export, datastore migrate import, datastore migrate check, datastore migrate unlock",
    differs:
      "an import that was interrupted goes on; `check` compares every address; the file is another one (docs/datastore-migration.md)",
  },
];
