// The conformance tests of sigs.k8s.io/network-policy-api as a program with the flags of a test binary and of that module.
// They need a kubeconfig (KUBECONFIG), and on every node the image that their manifests name.
package main

import (
	"regexp"
	"testing"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	api "sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/network-policy-api/conformance/tests"
	"sigs.k8s.io/network-policy-api/conformance/utils/flags"
	"sigs.k8s.io/network-policy-api/conformance/utils/suite"
)

func main() {
	testing.Main(regexp.MatchString, []testing.InternalTest{{Name: "TestConformance", F: testConformance}}, nil, nil)
}

func testConformance(t *testing.T) {
	cfg, err := config.GetConfig()
	if err != nil {
		t.Fatalf("Cannot read the kubeconfig: %v", err)
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatalf("Cannot open a client: %v", err)
	}
	clientSet, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatalf("Cannot open a client set: %v", err)
	}
	if err := api.Install(c.Scheme()); err != nil {
		t.Fatalf("Cannot install the types: %v", err)
	}
	conformance := suite.New(suite.Options{
		Client:                     c,
		ClientSet:                  clientSet,
		KubeConfig:                 *cfg,
		Debug:                      *flags.ShowDebug,
		CleanupBaseResources:       *flags.CleanupBaseResources,
		SupportedFeatures:          suite.ParseSupportedFeatures(*flags.SupportedFeatures),
		ExemptFeatures:             suite.ParseSupportedFeatures(*flags.ExemptFeatures),
		EnableAllSupportedFeatures: *flags.EnableAllSupportedFeatures,
	})
	conformance.Setup(t)
	conformance.Run(t, tests.ConformanceTests)
}
