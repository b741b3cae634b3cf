package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"herald/cron"
	"herald/gateway/admin"
	"herald/gateway/jobs/desk"
	"herald/sessions/sqlite"
)

func cronCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "cron", Short: "Make, see and change the jobs that run by themselves",
		Example: "  herald cron list\n  herald cron add \"every weekday at 9\" \"send me the news\" --deliver telegram\n  herald cron history"}
	cmd.AddCommand(cronListCmd(g), cronAddCmd(g), cronEditCmd(g), cronPauseCmd(g), cronResumeCmd(g), cronRunCmd(g), cronRemoveCmd(g),
		cronHistoryCmd(g),
		cronStatusCmd(g), cronIncidentsCmd(g), cronDoctorCmd(g), cronTickCmd(g))
	return cmd
}

// cron asks the daemon, or works on the database of a home that none serves.
func (g *globals) cron(ctx context.Context, a desk.Args) (r desk.Reply, err error) {
	err = g.call(ctx, "cron", a, &r)
	if !errors.Is(err, admin.ErrNoDaemon) || a.Action == "run" || a.Action == "tick" {
		return r, err
	}
	cfg, _, err := g.configFile()
	if err != nil {
		return r, err
	}
	paths, err := g.paths()
	if err != nil {
		return r, err
	}
	err = g.withStore(ctx, func(store *sqlite.Store) (err error) {
		home := desk.Offline{Store: store, Home: paths.Home, SkillsDir: paths.Skills, Zone: cfg.Zone(), Failing: cfg.Cron.Nudge}
		clerk, err := home.Clerk()
		if err != nil {
			return err
		}
		r, err = clerk.Do(ctx, a)
		return err
	})
	return r, err
}

func cronListCmd(g *globals) *cobra.Command {
	asJSON, all := false, false
	cmd := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List the jobs: when each runs next and how it went last", Args: cobra.NoArgs,
		Example: "  herald cron list\n  herald cron list --all --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := g.cron(cmd.Context(), desk.Args{Action: "list", All: all})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), r)
			}
			printJobs(cmd.OutOrStdout(), r, time.Now())
			return nil
		}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "show the jobs that have ended as well")
	return cmd
}

// jobFlags are what a job can be told by flags. Only those that are given change something.
type jobFlags struct {
	name, schedule, prompt, deliver, failureDeliver, script, monitor, workdir, pausedReason, reasoning, model, repeat string
	skills, contextFrom, toolsets, addSkills, removeSkills                                                            []string
	noAgent, continuity, noContinuity, paused, attach, attachDefault, clearSkills                                     bool
}

// register adds the flags that add and edit share.
func (f *jobFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "what the job is called; without one the beginning of its prompt")
	flags.StringVar(&f.deliver, "deliver", "", "where the output goes: local, origin, all, a platform, or platform:chat[:thread]; several with commas")
	flags.StringVar(&f.failureDeliver, "failure-deliver", "", "where notices of failures go instead; local keeps them back, \"\" takes it off")
	flags.StringArrayVar(&f.skills, "skill", nil, "a skill that a run reads first; may be repeated")
	flags.StringVar(&f.script, "script", "", "a script below the home's scripts folder; its output goes before the prompt")
	flags.BoolVar(&f.noAgent, "no-agent", false, "no agent: what the script prints is the output")
	flags.StringVar(&f.monitor, "monitor", "", "a URL or a script; a run does something only when what it gives has changed")
	flags.StringVar(&f.workdir, "workdir", "", "an absolute directory in which runs work")
	flags.StringArrayVar(&f.contextFrom, "context-from", nil, "id of a job whose newest output a run is given; may be repeated")
	flags.BoolVar(&f.continuity, "continuity", false, "give a run the job's own newest output")
	flags.StringArrayVar(&f.toolsets, "toolset", nil, "a toolset that a run has instead of the usual ones; may be repeated")
	flags.StringVar(&f.repeat, "repeat", "", "after how many runs the job is done: a number, once or forever")
	flags.BoolVar(&f.paused, "paused", false, "paused: it does not run before herald cron resume")
	flags.StringVar(&f.pausedReason, "paused-reason", "", "why it is paused")
	flags.StringVar(&f.model, "model", "", "the model of its runs; unset: the configured one")
	flags.StringVar(&f.reasoning, "reasoning-effort", "", "how much its runs think")
	flags.BoolVar(&f.attach, "attach-to-session", false, "put what is delivered into the conversation there (=false: never); not given: as cron.mirror_delivery says")
}

// args are what the flags ask for.
func (f *jobFlags) args(cmd *cobra.Command) (a desk.Args, err error) {
	given := cmd.Flags().Changed
	for name, pair := range map[string]struct {
		to   **string
		from *string
	}{
		"name": {&a.Change.Name, &f.name}, "schedule": {&a.Change.Schedule, &f.schedule}, "prompt": {&a.Change.Prompt, &f.prompt}, "deliver": {&a.Change.Deliver, &f.deliver},
		"failure-deliver": {&a.Change.FailureDeliver, &f.failureDeliver}, "script": {&a.Change.Script, &f.script}, "monitor": {&a.Change.Monitor, &f.monitor},
		"workdir": {&a.Change.Workdir, &f.workdir}, "paused-reason": {&a.Change.PausedReason, &f.pausedReason}, "model": {&a.Change.Model, &f.model},
		"reasoning-effort": {&a.Change.Reasoning, &f.reasoning},
	} {
		if given(name) {
			*pair.to = pair.from
		}
	}
	for name, pair := range map[string]struct {
		to   **bool
		from *bool
	}{"no-agent": {&a.Change.NoAgent, &f.noAgent}, "paused": {&a.Change.Paused, &f.paused}, "attach-to-session": {&a.Change.Attach, &f.attach},
		"continuity": {&a.Change.Continuity, &f.continuity}} {
		if given(name) {
			*pair.to = pair.from
		}
	}
	for name, pair := range map[string]struct {
		to   **[]string
		from *[]string
	}{"skill": {&a.Change.Skills, &f.skills}, "context-from": {&a.Change.ContextFrom, &f.contextFrom}, "toolset": {&a.Change.Toolsets, &f.toolsets}} {
		if given(name) {
			*pair.to = pair.from
		}
	}
	if given("repeat") {
		n, err := cron.ParseRepeat(f.repeat)
		if err != nil {
			return a, err
		}
		a.Change.Repeat = &n
	}
	if f.noContinuity {
		off := false
		a.Change.Continuity = &off
	}
	if f.clearSkills {
		a.Change.Skills = &[]string{}
	}
	a.AddSkills, a.RemoveSkills, a.Unattach = f.addSkills, f.removeSkills, f.attachDefault
	return a, nil
}

func cronAddCmd(g *globals) *cobra.Command {
	f := jobFlags{}
	cmd := &cobra.Command{Use: "add <when> [what]", Aliases: []string{"create"}, Short: "Make a job", Args: cobra.RangeArgs(1, 2),
		Long: `Makes a job. The time and the prompt may be one argument: herald cron add "every weekday at 9 send me the news".

When: "every 30m" (or 30m), "every hour", "every weekday at 9am", "mon and thu at 14:00", "in 2h" (once), a time such as
2027-01-31T09:00 (once), or a cron expression such as "0 9 * * 1-5". Without --deliver the output is only kept.`,
		Example: "  herald cron add \"every weekday at 9\" \"send me the news\" --deliver telegram\n  herald cron add \"in 20m\" \"remind me of the tea\" --deliver origin\n  herald cron add 1h --script check.sh --no-agent --deliver slack:C0123456789",
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := f.args(cmd)
			if err != nil {
				return err
			}
			a.Action = "add"
			if len(args) == 2 {
				a.Change.Schedule, a.Change.Prompt = &args[0], &args[1]
			} else {
				a.Phrase = args[0]
			}
			r, err := g.cron(cmd.Context(), a)
			if err != nil {
				return err
			}
			printChanged(cmd.OutOrStdout(), r, "made", time.Now())
			return nil
		}}
	f.register(cmd)
	return cmd
}

func cronEditCmd(g *globals) *cobra.Command {
	f := jobFlags{}
	cmd := &cobra.Command{Use: "edit <job>", Aliases: []string{"update"}, Short: "Change a job, by its id or name; what is not given stays", Args: cobra.ExactArgs(1),
		Example: "  herald cron edit \"Morning news\" --schedule \"every day at 8\"\n  herald cron edit 0123456789ab --add-skill weather --deliver all\n  herald cron edit 0123456789ab --attach-to-session=false",
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := f.args(cmd)
			if err != nil {
				return err
			}
			a.Action, a.Job = "edit", args[0]
			r, err := g.cron(cmd.Context(), a)
			if err != nil {
				return err
			}
			printChanged(cmd.OutOrStdout(), r, "changed", time.Now())
			return nil
		}}
	f.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.schedule, "schedule", "", "when it runs")
	flags.StringVar(&f.prompt, "prompt", "", "what it does")
	flags.BoolVar(&f.noContinuity, "no-continuity", false, "no longer give a run the job's own newest output")
	flags.BoolVar(&f.attachDefault, "attach-default", false, "follow cron.mirror_delivery again")
	flags.StringArrayVar(&f.addSkills, "add-skill", nil, "add a skill; may be repeated")
	flags.StringArrayVar(&f.removeSkills, "remove-skill", nil, "take a skill off; may be repeated")
	flags.BoolVar(&f.clearSkills, "clear-skills", false, "take all skills off")
	cmd.MarkFlagsMutuallyExclusive("continuity", "no-continuity")
	cmd.MarkFlagsMutuallyExclusive("attach-to-session", "attach-default")
	cmd.MarkFlagsMutuallyExclusive("skill", "clear-skills")
	return cmd
}

// cronOne is a verb on one job, with words behind it that are said of it or to it.
func cronOne(g *globals, use, action, short, done, example string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.MinimumNArgs(1), Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := g.cron(cmd.Context(), desk.Args{Action: action, Job: args[0], Note: strings.Join(args[1:], " ")})
			if err != nil {
				return err
			}
			printChanged(cmd.OutOrStdout(), r, done, time.Now())
			return nil
		}}
}

func cronPauseCmd(g *globals) *cobra.Command {
	return cronOne(g, "pause <job> [why]", "pause", "Keep a job from running until it is resumed", "paused", "  herald cron pause \"Morning news\" on holiday")
}

func cronResumeCmd(g *globals) *cobra.Command {
	return cronOne(g, "resume <job>", "resume", "Let a paused job run again", "resumed", "  herald cron resume \"Morning news\"")
}

func cronRunCmd(g *globals) *cobra.Command {
	cmd := cronOne(g, "run <job> [note]", "run", "Run a job now, beside its schedule; the note is added to this run's prompt", "started", "  herald cron run \"Morning news\"\n  herald cron run 0123456789ab only the weather")
	cmd.Long = "Runs a job now, also one that is paused or has ended, in the running daemon. Its output goes where it always goes."
	return cmd
}

func cronRemoveCmd(g *globals) *cobra.Command {
	yes := false
	cmd := &cobra.Command{Use: "remove <job>", Aliases: []string{"rm", "delete"}, Short: "End a job and forget it with its runs", Args: cobra.ExactArgs(1),
		Example: "  herald cron remove \"Morning news\"\n  herald cron remove 0123456789ab --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes && onTerminal(cmd) {
				fmt.Fprintf(cmd.OutOrStdout(), "Remove job %q with its history? [y/N] ", clean(args[0]))
				answer := ""
				_, _ = fmt.Fscanln(cmd.InOrStdin(), &answer)
				if !strings.HasPrefix(strings.ToLower(answer), "y") {
					return errors.New("nothing was removed")
				}
			}
			r, err := g.cron(cmd.Context(), desk.Args{Action: "remove", Job: args[0]})
			if err != nil {
				return err
			}
			for _, j := range r.Jobs {
				fmt.Fprintf(cmd.OutOrStdout(), "removed: %s %s\n", j.ID, clean(j.Name))
			}
			return nil
		}}
	cmd.Flags().BoolVar(&yes, "yes", false, "don't ask")
	return cmd
}

// onTerminal reports whether somebody is there to answer a question.
func onTerminal(cmd *cobra.Command) bool {
	f, ok := cmd.InOrStdin().(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

func cronHistoryCmd(g *globals) *cobra.Command {
	asJSON, limit := false, 20
	cmd := &cobra.Command{Use: "history [job]", Aliases: []string{"runs"}, Short: "Show the newest runs of a job, or of all: when, how it ended, and why", Args: cobra.MaximumNArgs(1),
		Example: "  herald cron history\n  herald cron history \"Morning news\" --limit 5",
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > 10000 {
				return fmt.Errorf("--limit %d: want 1 to 10000", limit)
			}
			a := desk.Args{Action: "history", Limit: limit}
			if len(args) > 0 {
				a.Job = args[0]
			}
			r, err := g.cron(cmd.Context(), a)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), r)
			}
			zone, err := g.zone()
			if err != nil {
				return err
			}
			printRuns(cmd.OutOrStdout(), r, zone, time.Now())
			return nil
		}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().IntVar(&limit, "limit", 20, "how many runs")
	return cmd
}
