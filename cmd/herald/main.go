// Command herald is the messaging gateway for an AI agent: the daemon (herald run) and the verbs that look
// after it. Each file of this package is one verb and wiring only.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // schedules name zones, also on machines that have no table of them

	"github.com/spf13/cobra"

	"herald/tools/sandbox/local"
)

// Exit codes. 75 asks a supervisor to start Herald again, 78 says that it would fail again.
const (
	exitFailed = 1
	exitConfig = 78
)

// coded is an error with an exit code of its own.
type coded struct {
	error
	code int
}

func (c coded) Unwrap() error { return c.error }

func main() {
	if local.IsSupervisor(os.Args) {
		os.Exit(local.Supervise())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first signal stops in order, a second one ends the process at once
	err := root().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "herald: "+err.Error())
	var c coded
	if errors.As(err, &c) {
		os.Exit(c.code)
	}
	os.Exit(exitFailed)
}

// root is the command tree.
func root() *cobra.Command {
	g := &globals{}
	cmd := &cobra.Command{
		Use:   "herald",
		Short: "A messaging gateway that people can trust with an AI agent",
		Long: `Herald puts an AI agent into the chats where people already are, and loses nothing on the way.

Start it with no configuration at all and talk to it in your browser:

  herald run

Give it a model and a Telegram bot through the environment or ~/.herald/.env:

  ANTHROPIC_API_KEY=... TELEGRAM_BOT_TOKEN=... TELEGRAM_ALLOWED_USERS=12345 herald run`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
	}
	cmd.PersistentFlags().StringVar(&g.home, "home", "", "home directory (HERALD_HOME; default ~/.herald)")
	cmd.PersistentFlags().StringVarP(&g.profile, "profile", "p", "", "profile name (HERALD_PROFILE; default \"default\")")
	cmd.PersistentFlags().StringArrayVar(&g.set, "set", nil, "a setting as key=value, such as http.listen=127.0.0.1:0; may be repeated")
	cmd.AddCommand(runCmd(g), statusCmd(g), sessionsCmd(g), sendCmd(g), channelsCmd(g), logsCmd(g), backupCmd(g), doctorCmd(g), configCmd(g),
		pairingCmd(g), approvalsCmd(g), rollbackCmd(g), checkpointsCmd(g), sandboxCmd(g), cronCmd(g), slackCmd(), teamsCmd(g), signalCmd(g),
		versionCmd())
	return cmd
}
