package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"herald/gateway/admin"
	"herald/gateway/jobs/desk"
)

// zone is whose clock schedules are read on.
func (g *globals) zone() (*time.Location, error) {
	cfg, _, err := g.configFile()
	if err != nil {
		return nil, err
	}
	return cfg.Zone(), nil
}

// daemonRuns reports whether a daemon serves the home.
func (g *globals) daemonRuns(cmd *cobra.Command) (bool, error) {
	err := g.call(cmd.Context(), "identify", nil, nil)
	if errors.Is(err, admin.ErrNoDaemon) {
		return false, nil
	}
	return err == nil, err
}

func cronStatusCmd(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{Use: "status", Short: "Show whether due jobs are looked for, what runs, and how the last day went", Args: cobra.NoArgs,
		Example: "  herald cron status\n  herald cron status --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon, err := g.daemonRuns(cmd)
			if err != nil {
				return err
			}
			r, err := g.cron(cmd.Context(), desk.Args{Action: "status"})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), r.Status)
			}
			zone, err := g.zone()
			if err != nil {
				return err
			}
			printCronStatus(cmd.OutOrStdout(), r, daemon, zone, time.Now())
			return nil
		}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func cronIncidentsCmd(g *globals) *cobra.Command {
	asJSON, all := false, false
	cmd := &cobra.Command{Use: "incidents", Short: "List what fails, by job and cause; an acknowledged cause is not reported again", Args: cobra.NoArgs,
		Example: "  herald cron incidents\n  herald cron incidents --all\n  herald cron incidents ack 0123abcd",
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := g.cron(cmd.Context(), desk.Args{Action: "incidents", All: all})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), r.Incidents)
			}
			printIncidents(cmd.OutOrStdout(), r, time.Now())
			return nil
		}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "show those as well that a later run has resolved")
	cmd.AddCommand(cronAckCmd(g))
	return cmd
}

func cronAckCmd(g *globals) *cobra.Command {
	back := false
	cmd := &cobra.Command{Use: "ack <incident>", Short: "Be told no more of failures of this job with this cause; others are told", Args: cobra.ExactArgs(1),
		Example: "  herald cron incidents ack 0123abcd\n  herald cron incidents ack 0123abcd --undo",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := g.cron(cmd.Context(), desk.Args{Action: "ack", Incident: args[0], Back: back})
			if err != nil {
				return err
			}
			printIncidents(cmd.OutOrStdout(), r, time.Now())
			return nil
		}}
	cmd.Flags().BoolVar(&back, "undo", false, "report it again")
	return cmd
}

// errIssues makes doctor end with code 1 after what it has printed.
var errIssues = errors.New("somebody should put that right: see above")

func cronDoctorCmd(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{Use: "doctor", Short: "Look for what keeps jobs from running or their output from arriving; exits 1 when there is something", Args: cobra.NoArgs,
		Example: "  herald cron doctor\n  herald cron doctor --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := g.cron(cmd.Context(), desk.Args{Action: "doctor"})
			if err != nil {
				return err
			}
			if asJSON {
				if err := printJSON(cmd.OutOrStdout(), r.Issues); err != nil {
					return err
				}
			} else {
				printIssues(cmd.OutOrStdout(), r)
			}
			if len(r.Issues) > 0 {
				return errIssues
			}
			if !asJSON {
				fmt.Fprintln(cmd.OutOrStdout(), "no problem found")
			}
			return nil
		}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func cronTickCmd(g *globals) *cobra.Command {
	return &cobra.Command{Use: "tick", Short: "Make the running daemon look for due jobs now", Args: cobra.NoArgs, Example: "  herald cron tick",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := g.cron(cmd.Context(), desk.Args{Action: "tick"}); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "due jobs were looked for")
			return nil
		}}
}
