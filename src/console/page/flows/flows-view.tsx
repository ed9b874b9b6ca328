export function FlowsView() {
  return <h1>Flows</h1>;
}
