/** The labels that policies see: those of a resource itself, of its profiles, and those that a ContainerLabels gives it. */
import type { Datastore } from "../../datastore/datastore.ts";
import { type ContainerLabels, givenLabels, labelSourcesOf } from "../../model/container-labels.ts";
import type { Profile } from "../../model/profile.ts";
import { labelsOf, storedProfile } from "../../policy/judge/members.ts";
import type { AnyEndpoint, AnyMember } from "../../policy/judge/resources.ts";
import { policyResourcesIn } from "../policy/describe-policies.ts";
import { CONTAINER_LABELS_ROW } from "./container-labels.ts";
import type { DescribedSection, InheritedLabels } from "./kind.ts";
import { PROFILE_ROW } from "./profile.ts";

/** For the kinds whose labels selectors of policies and rules see. */
export const LABELS_OF_MEMBERS: InheritedLabels = {
  from: [PROFILE_ROW, CONTAINER_LABELS_ROW],
  of: (member: AnyMember, profiles: readonly Profile[], containerLabels: readonly ContainerLabels[]) =>
    labelsOf(member, { profiles, containerLabels }),
};

export async function describeInherited(store: Datastore, endpoint: AnyEndpoint): Promise<readonly DescribedSection[]> {
  const { profiles, containerLabels } = await policyResourcesIn(store);
  const sources = [
    ...(endpoint.kind === "WorkloadEndpoint" ? labelSourcesOf(endpoint, containerLabels) : []).map((each) => ({
      name: `containerlabels/${each.metadata.name}`,
      labels: givenLabels(each.spec),
    })),
    { name: undefined, labels: endpoint.metadata.labels ?? {} },
    ...(endpoint.spec.profiles ?? []).map((name) => ({
      name: `profile/${name}`,
      labels: storedProfile(name, profiles)?.spec.labelsToApply ?? {},
    })),
  ];
  const rows = Object.entries(labelsOf(endpoint, { profiles, containerLabels })).flatMap(([label, value]) => {
    const name = sources.find(({ labels }) => Object.hasOwn(labels, label) && labels[label] === value)?.name;
    return name === undefined ? [] : [[`${label}=${value}`, `from ${name}`]];
  });
  return rows.length === 0 ? [] : [{ title: "Inherited labels", rows }];
}
