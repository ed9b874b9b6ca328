/** Profiles: what is allowed if no policy applies, and labels that endpoints inherit. */
import { PROFILE } from "../../model/kinds.ts";
import { DEFAULT_ALLOW_PROFILE, type Profile } from "../../model/profile.ts";
import { usersOfProfile } from "../delete/uses.ts";
import { describeProfile } from "../policy/describe-policies.ts";
import { type AdminKind, formatLabels } from "./kind.ts";

export const PROFILE_ROW: AdminKind<Profile> = {
  ...PROFILE,
  columns: [
    { header: "LABELS", cell: ({ spec }) => formatLabels(spec.labelsToApply ?? {}) },
    { header: "INGRESS", cell: ({ spec }) => `${spec.ingress?.length ?? 0}`, isWide: true },
    { header: "EGRESS", cell: ({ spec }) => `${spec.egress?.length ?? 0}`, isWide: true },
  ],
  describe: describeProfile,
  usersOf: usersOfProfile,
  remedyIfInUse:
    "end these containers or change these host endpoints first, or use --force: what no policy allows is then denied to them, until a restart of a container writes the profile of its network again",
  absenceOf: (name) =>
    name === DEFAULT_ALLOW_PROFILE ? "it is built in, allows everything, and cannot be changed or deleted" : undefined,
};
