// Command dikastes is Calico's sidecar for application layer policy, started as app-policy/cmd/dikastes starts it.
//
// The program of the release denies every request: since 3.30.0 it registers no check provider
// (github.com/projectcalico/calico/pull/11986, fixed in later releases). This one registers a provider that calls the
// release's own evaluation of policies, as the fix does.
package main

import (
	"context"
	"flag"
	"net"
	"os"
	"os/signal"
	"syscall"

	authz "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/projectcalico/calico/app-policy/checker"
	"github.com/projectcalico/calico/app-policy/health"
	"github.com/projectcalico/calico/app-policy/policystore"
	"github.com/projectcalico/calico/app-policy/proto"
	"github.com/projectcalico/calico/app-policy/syncher"
	"github.com/projectcalico/calico/app-policy/uds"
	"github.com/projectcalico/calico/felix/rules"
	"github.com/sirupsen/logrus"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
)

func main() {
	listen := flag.String("listen", "", "path of the socket of the proxy")
	dial := flag.String("dial", "", "path of the socket of the node agent")
	flag.Parse()

	listener, err := net.Listen("unix", *listen)
	if err != nil {
		logrus.WithError(err).Fatal("Cannot listen")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	stores := policystore.NewPolicyStoreManager()
	server := grpc.NewServer()
	checker.NewServer(ctx, stores, checker.WithRegisteredCheckProvider(policyProvider{})).RegisterGRPCServices(server)
	client := syncher.NewClient(*dial, stores, uds.GetDialOptions())
	proto.RegisterHealthzServer(server, health.NewHealthCheckService(client))
	go client.Sync(ctx)
	go func() {
		if err := server.Serve(listener); err != nil {
			logrus.WithError(err).Fatal("Cannot serve")
		}
	}()

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	<-signals
	server.Stop()
}

// policyProvider decides by the policies and profiles of the pod. Without an endpoint, which is what the sidecar has
// before it is synchronised, no provider is enabled and the release's status stays: not OK.
type policyProvider struct{}

func (policyProvider) Name() string { return "alp" }

func (policyProvider) EnabledForRequest(store *policystore.PolicyStore, _ *authz.CheckRequest) bool {
	return store.Endpoint != nil
}

func (policyProvider) Check(store *policystore.PolicyStore, request *authz.CheckRequest) (*authz.CheckResponse, error) {
	flow := checker.NewCheckRequestToFlowAdapter(request)
	trace := checker.Evaluate(rules.RuleDirIngress, store, store.Endpoint, flow)
	code := checker.PERMISSION_DENIED
	if len(trace) > 0 && trace[len(trace)-1].Action == rules.RuleActionAllow {
		code = checker.OK
	}
	return &authz.CheckResponse{Status: &status.Status{Code: code}}, nil
}
