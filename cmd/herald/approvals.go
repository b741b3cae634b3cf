package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"herald/gateway"
	"herald/gateway/admin"
	"herald/gateway/approval"
	"herald/gateway/config"
	"herald/sessions/sqlite"
	"herald/tools/terminal"
)

func approvalsCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "approvals", Short: "See and change which dangerous commands run without a question",
		Example: "  herald approvals list\n  herald approvals allow interpreter-code\n  herald approvals revoke interpreter-code\n  herald approvals suggest"}
	cmd.AddCommand(approvalsListCmd(g), approvalsAllowCmd(g), approvalsRevokeCmd(g), approvalsSuggestCmd(g))
	return cmd
}

// configFile loads the configuration and returns the file that changes go to.
func (g *globals) configFile() (*config.Config, string, error) {
	paths, err := g.paths()
	if err != nil {
		return nil, "", err
	}
	source, err := g.source(paths)
	if err != nil {
		return nil, "", err
	}
	cfg, _, err := config.Load(source)
	if err != nil {
		return nil, "", coded{err, exitConfig}
	}
	if source.File != "" {
		return cfg, source.File, nil
	}
	return cfg, paths.Config, nil
}

// approvalsReply asks the daemon, or reads the store of a home that none serves.
func (g *globals) approvalsReply(ctx context.Context) (r approval.Reply, err error) {
	err = g.call(ctx, "approvals", nil, &r)
	if errors.Is(err, admin.ErrNoDaemon) {
		err = g.withStore(ctx, func(store *sqlite.Store) (err error) {
			r, err = approval.List(ctx, store)
			return err
		})
	}
	return r, err
}

func approvalsListCmd(g *globals) *cobra.Command {
	return &cobra.Command{Use: "list", Short: "The mode, what waits for a person, and what is always allowed or never", Args: cobra.NoArgs, Example: "  herald approvals list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := g.configFile()
			if err != nil {
				return err
			}
			r, err := g.approvalsReply(cmd.Context())
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "mode: %s\n", cfg.Approvals.Mode)
			for _, w := range r.Waiting {
				fmt.Fprintf(out, "waits since %s in %s/%s: %q (%v)\n", w.Asked.Local().Format("15:04:05"), w.Platform, w.Chat, w.Preview, w.Kinds)
			}
			for _, e := range cfg.CommandAllowlist {
				fmt.Fprintf(out, "always: %s\n", e)
			}
			for _, p := range cfg.Approvals.Deny {
				fmt.Fprintf(out, "never: %s\n", p)
			}
			fmt.Fprintln(out, "\nkinds of danger:")
			for _, k := range terminal.Kinds() {
				fmt.Fprintf(out, "  %-21s %s\n", k.Key, k.Reason)
			}
			return nil
		}}
}

// changeAllowlist edits command_allowlist; a running daemon follows by itself.
func (g *globals) changeAllowlist(change func([]string) ([]string, error)) error {
	cfg, file, err := g.configFile()
	if err != nil {
		return err
	}
	list, err := change(slices.Clone(cfg.CommandAllowlist))
	if err != nil || slices.Equal(list, cfg.CommandAllowlist) {
		return err
	}
	return gateway.EditConfig(file, func(text []byte) ([]byte, error) { return config.SetList(text, "command_allowlist", list) })
}

func approvalsAllowCmd(g *globals) *cobra.Command {
	return &cobra.Command{Use: "allow <kind or whole command>...", Short: "Let a kind of danger, or one exact command, run without a question", Args: cobra.MinimumNArgs(1),
		Example: "  herald approvals allow interpreter-code\n  herald approvals allow 'rm -rf node_modules'",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, entry := range args {
				_, kind := terminal.KindOf(entry)
				if !kind && len(terminal.Dangers(entry, terminal.Place{})) == 0 {
					return fmt.Errorf("%q is no kind of danger, and no dangerous command; herald approvals list shows the kinds", entry)
				}
			}
			err := g.changeAllowlist(func(list []string) ([]string, error) {
				for _, entry := range args {
					if !slices.Contains(list, entry) {
						list = append(list, entry)
					}
				}
				return list, nil
			})
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), "allowed from now on")
			}
			return err
		}}
}

func approvalsRevokeCmd(g *globals) *cobra.Command {
	return &cobra.Command{Use: "revoke <entry>...", Short: "Ask about it again", Args: cobra.MinimumNArgs(1), Example: "  herald approvals revoke interpreter-code",
		RunE: func(cmd *cobra.Command, args []string) error {
			err := g.changeAllowlist(func(list []string) ([]string, error) {
				for _, entry := range args {
					if !slices.Contains(list, entry) {
						return nil, fmt.Errorf("%q is not among what is allowed", entry)
					}
				}
				return slices.DeleteFunc(list, func(e string) bool { return slices.Contains(args, e) }), nil
			})
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), "asked about again")
			}
			return err
		}}
}

func approvalsSuggestCmd(g *globals) *cobra.Command {
	apply := 0
	cmd := &cobra.Command{Use: "suggest", Short: "Which kinds of danger you have allowed again and again; destructive ones are never suggested", Args: cobra.NoArgs,
		Example: "  herald approvals suggest\n  herald approvals suggest --apply 1",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := g.configFile()
			if err != nil {
				return err
			}
			r, err := g.approvalsReply(cmd.Context())
			if err != nil {
				return err
			}
			r.Suggestions = slices.DeleteFunc(r.Suggestions, func(s approval.Suggestion) bool {
				return slices.Contains(cfg.CommandAllowlist,
					s.Kind)
			})
			if apply < 0 || apply > len(r.Suggestions) {
				return fmt.Errorf("--apply %d: there are %d suggestions", apply, len(r.Suggestions))
			}
			if len(r.Suggestions) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing to suggest")
				return nil
			}
			for i, s := range r.Suggestions {
				fmt.Fprintf(cmd.OutOrStdout(), "%d. %s: %s (%d times)\n", i+1, s.Kind, s.Reason, s.Times)
			}
			if apply == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "\nadd --apply N to allow the first N")
				return nil
			}
			err = g.changeAllowlist(func(list []string) ([]string, error) {
				for _, s := range r.Suggestions[:apply] {
					list = append(list, s.Kind)
				}
				return list, nil
			})
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "allowed from now on: the first %d\n", apply)
			}
			return err
		}}
	cmd.Flags().IntVar(&apply, "apply", 0, "allow the first N")
	return cmd
}
