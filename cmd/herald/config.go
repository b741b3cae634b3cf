package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"herald/gateway/config"
	"herald/platforms/all"
)

func configCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check and show the configuration",
		Example: "  herald config check\n  herald config show --changed"}
	load := func() (*config.Config, *config.Report, error) {
		paths, err := g.paths()
		if err != nil {
			return nil, nil, err
		}
		source, err := g.source(paths)
		if err != nil {
			return nil, nil, err
		}
		cfg, report, _ := config.Load(source)
		return cfg, report, nil
	}
	check := &cobra.Command{
		Use: "check", Short: "Check the configuration and say what is wrong with it", Args: cobra.NoArgs, Example: "  herald config check",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, report, err := load()
			if err != nil {
				return err
			}
			for _, w := range report.Warnings {
				fmt.Fprintln(cmd.OutOrStdout(), "warning: "+w.Error())
			}
			for _, e := range report.Errors {
				fmt.Fprintln(cmd.OutOrStdout(), "error: "+e.Error())
			}
			if n := len(report.Errors); n > 0 {
				return coded{fmt.Errorf("%d errors in the configuration", n), exitConfig}
			}
			fmt.Fprintln(cmd.OutOrStdout(), "the configuration is good")
			return nil
		},
	}
	changed := false
	show := &cobra.Command{
		Use: "show", Short: "Show every setting and where it comes from; secrets are masked", Args: cobra.NoArgs,
		Example: "  herald config show\n  herald config show --changed",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, report, err := load()
			if err != nil {
				return err
			}
			out := config.Show(cfg, report)
			if changed {
				out = config.ShowChanged(cfg, report)
			}
			_, err = cmd.OutOrStdout().Write(out)
			return err
		},
	}
	show.Flags().BoolVar(&changed, "changed", false, "only what differs from the defaults")
	schema := &cobra.Command{
		Use: "schema", Short: "Print a JSON Schema of config.yaml for editors", Args: cobra.NoArgs,
		Example: "  herald config schema > ~/.herald/config.schema.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(config.Schema(all.Kinds()...))
			return err
		},
	}
	cmd.AddCommand(check, show, schema)
	return cmd
}
