/** What every kind has. */
import { below, type Descriptions } from "./fields.ts";

const METADATA: Descriptions = {
  "": "Name, labels and other data about the resource",
  name: "Name of the resource, unique for its kind (and namespace)",
  namespace: "Namespace of the resource, if its kind is namespaced",
  uid: "Unique identifier, assigned when the resource is created",
  creationTimestamp: "When the resource was created",
  labels: "Labels that selectors match",
  annotations: "Additional data of users and tools",
  generateName: "Prefix of a generated name; kept, but names are not generated",
  resourceVersion: "Revision in the datastore; a write that contains it fails if the resource has changed since",
  generation: "Number of changes of the spec, counted by Kubernetes",
  finalizers: "What must be done before the resource may be deleted",
  ownerReferences: "Resources that this one belongs to",
  deletionTimestamp: "When the deletion was requested",
  deletionGracePeriodSeconds: "How long the deletion may take",
  managedFields: "Which tool set which field, kept by Kubernetes",
  selfLink: "Path of the resource in the Kubernetes API; deprecated",
};

export const ALL_KINDS: Descriptions = {
  apiVersion: "API group and version of the kind",
  kind: "Kind of the resource",
  ...below("metadata", METADATA[""] ?? "", METADATA),
};
