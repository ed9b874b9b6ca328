// Command kube is kube-apiserver and kube-controller-manager of an older release, in one program.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
}

func main() {
	component, known := components[filepath.Base(os.Args[0])]
	if !known {
		fmt.Fprintln(os.Stderr, "call it by the name of a component")
		os.Exit(2)
	}
	os.Exit(cli.Run(component()))
}
