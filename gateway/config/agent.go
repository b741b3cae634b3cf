package config

import "time"

// Model says which model answers. Choice resolves it together with Providers.
type Model struct {
	Provider  string     `yaml:"provider" default:"auto" oneof:"auto,openai,anthropic,openrouter,ollama,demo" doc:"who serves the model; auto: the first provider that has a key, else a local Ollama, else demo"`
	Name      string     `yaml:"name" env:"HERALD_MODEL" check:"text" doc:"the model's name there; unset: the provider's default"`
	BaseURL   string     `yaml:"base_url" check:"url" doc:"where the chosen provider answers, in place of its own address"`
	Context   int        `yaml:"context" default:"0" min:"0" max:"100000000" words:"auto" doc:"context window in tokens; 0: as the provider says"`
	MaxOutput int        `yaml:"max_output" default:"0" min:"0" max:"10000000" words:"auto" doc:"most tokens of one answer; 0: the provider's default"`
	Reasoning string     `yaml:"reasoning" oneof:"none,low,medium,high" doc:"effort spent on reasoning; unset: the provider's default"`
	Fallbacks []Fallback `yaml:"fallbacks" doc:"models to try in order when this one fails"`
	// PersistSwitch is the ecosystem's name (spec gateway 6.1).
	PersistSwitch bool `yaml:"persist_switch_by_default" default:"false" doc:"/model without an option also changes the configuration" reload:"live"`
}

// Fallback is one model to try after another failed.
type Fallback struct {
	Provider string `yaml:"provider" oneof:"openai,anthropic,openrouter,ollama,demo" required:"true" doc:"who serves it"`
	Name     string `yaml:"name" required:"true" check:"text" doc:"the model's name there"`
	BaseURL  string `yaml:"base_url" check:"url" doc:"where it answers, in place of the provider's own address"`
}

// Providers holds what is needed to reach each provider. The keys are secrets.
type Providers struct {
	OpenAI     Provider `yaml:"openai" name:"OPENAI" doc:"OpenAI, or any server that speaks its chat completions"`
	Anthropic  Provider `yaml:"anthropic" name:"ANTHROPIC" doc:"Anthropic"`
	OpenRouter Provider `yaml:"openrouter" name:"OPENROUTER" doc:"OpenRouter"`
	Ollama     Ollama   `yaml:"ollama" doc:"a local Ollama"`
}

// Provider is one provider that wants a key.
type Provider struct {
	APIKey  Secret `yaml:"api_key" env:"{N}_API_KEY" doc:"the key"`
	BaseURL string `yaml:"base_url" env:"{N}_BASE_URL" check:"url" doc:"where it answers; unset: its own address"`
}

// Ollama is a model server that needs no key.
type Ollama struct {
	BaseURL string `yaml:"base_url" env:"OLLAMA_HOST" default:"http://127.0.0.1:11434" check:"ollama" doc:"where it answers; host:port is enough"`
}

// Agent is the loop's budgets and time limits (spec gateway 1.9, 1.19, 6.1). 0 switches a time limit off.
type Agent struct {
	MaxTurns         int           `yaml:"max_turns" default:"500" min:"0" max:"1000000" words:"none,unlimited,-1" doc:"model calls of one turn; 0: no limit"`
	Timeout          time.Duration `yaml:"gateway_timeout" default:"1800s" min:"0s" max:"168h" doc:"a turn without any progress for so long is ended; 0: never"`
	TimeoutWarning   time.Duration `yaml:"gateway_timeout_warning" default:"900s" min:"0s" max:"168h" doc:"a turn without any progress for so long is pointed out, once; 0: never"`
	NotifyInterval   time.Duration `yaml:"gateway_notify_interval" default:"180s" min:"0s" max:"24h" doc:"how often a long turn says that it still works; 0: never"`
	StallTimeout     time.Duration `yaml:"session_stall_timeout" default:"300s" min:"0s" max:"24h" doc:"with messages waiting and no progress for so long, one notice suggests /new; 0: never"`
	LeaseTimeout     time.Duration `yaml:"gateway_turn_lease_timeout" default:"5s" min:"1s" max:"10m" doc:"how long a message waits for its conversation to become free before it is queued"`
	BuildTimeout     time.Duration `yaml:"build_wait_timeout" default:"600s" min:"1s" max:"24h" doc:"how long a turn waits for its tools to become ready"`
	AutoContinue     time.Duration `yaml:"auto_continue_freshness" default:"3600s" min:"0s" max:"720h" doc:"a turn cut off by a restart goes on by itself when it is younger; an older one goes on with the chat's next message"`
	DrainTimeout     time.Duration `yaml:"restart_drain_timeout" default:"10s" min:"0s" max:"24h" doc:"how long running turns may go on after a stop signal; the rest resumes after the start"`
	CronDrainTimeout time.Duration `yaml:"cron_drain_timeout" default:"30s" min:"0s" max:"24h" doc:"the same for scheduled and API runs"`
	InterruptGrace   time.Duration `yaml:"interrupt_grace" default:"5s" min:"0s" max:"10m" doc:"how long an interrupted turn may take to end by itself"`
	APIMaxRetries    int           `yaml:"api_max_retries" default:"3" min:"0" max:"100" doc:"how often a failed model call is repeated"`
	EmptyRetries     int           `yaml:"empty_max_retries" default:"3" min:"0" max:"100" doc:"how often an empty answer of the model is asked for again"`
	CallTimeout      time.Duration `yaml:"model_call_timeout" default:"600s" min:"1s" max:"24h" doc:"time limit of one model call without any output"`
	MaxCrashes       int           `yaml:"max_turn_crashes" default:"3" min:"1" max:"100" doc:"process crashes within one turn before it is set aside"`
	CacheSize        int           `yaml:"cache_size" default:"128" min:"1" max:"100000" doc:"conversations kept in memory" reload:"restart"`
	CacheIdle        time.Duration `yaml:"cache_idle" default:"3600s" min:"1s" max:"720h" doc:"how long a quiet conversation is kept in memory"`
	Instructions     string        `yaml:"instructions" check:"long" doc:"text added to the agent's prompt" reload:"session"`
}

// Compression is spec gateway 6.9.
type Compression struct {
	Enabled        bool          `yaml:"enabled" default:"true" doc:"summarise long conversations by itself"`
	Threshold      float64       `yaml:"threshold" default:"0.5" min:"0.1" max:"0.95" doc:"share of the context window at which it starts; windows below 512,000 tokens use at least 0.75"`
	ThresholdTok   int           `yaml:"threshold_tokens" default:"256000" min:"0" max:"100000000" words:"none" doc:"tokens at which it starts at the latest; 0: the share alone decides"`
	TargetRatio    float64       `yaml:"target_ratio" default:"0.2" min:"0.05" max:"0.8" doc:"share of the threshold that is left afterwards"`
	TailMode       string        `yaml:"tail_mode" default:"lean" oneof:"lean,full" doc:"how much of the newest part is kept: as little as target_ratio asks for, or all of protect_last_n"`
	ProtectLast    int           `yaml:"protect_last_n" default:"20" min:"0" max:"10000" doc:"newest messages that are kept"`
	ProtectFirst   int           `yaml:"protect_first_n" default:"3" min:"0" max:"1000" doc:"oldest messages that are kept"`
	MinTailUser    int           `yaml:"min_tail_user_messages" default:"1" min:"0" max:"1000" doc:"newest messages of people that are kept in any case"`
	MaxAttempts    int           `yaml:"max_attempts" default:"3" min:"1" max:"100" doc:"attempts in one turn"`
	InPlace        bool          `yaml:"in_place" default:"true" doc:"the session goes on with the summary; the old rows stay readable"`
	IdleAfter      time.Duration `yaml:"idle_compact_after_seconds" default:"0s" min:"0s" max:"720h" doc:"summarise a conversation that is quiet for so long; 0: never"`
	HygieneHold    time.Duration `yaml:"hygiene_max_turn_hold_seconds" default:"10s" min:"0s" max:"1h" doc:"longest that a new message waits for it"`
	Progress       bool          `yaml:"progress_notices" default:"false" doc:"say in the chat that it happens"`
	ContextTimeout time.Duration `yaml:"context_timeout_seconds" default:"120s" min:"1s" max:"24h" doc:"time limit of one summary"`
	ContextTotal   time.Duration `yaml:"context_total_ceiling_seconds" default:"600s" min:"1s" max:"24h" doc:"time limit of all attempts together"`
}

// Streaming is spec gateway 1.10. It applies where a platform can edit.
type Streaming struct {
	Enabled      bool          `yaml:"enabled" default:"true" doc:"show the growing answer where the platform can edit"`
	EditInterval time.Duration `yaml:"edit_interval" default:"800ms" min:"50ms" max:"1m" doc:"least time between two edits; a platform may ask for more"`
	Buffer       int           `yaml:"buffer_threshold" default:"24" min:"1" max:"10000" doc:"new characters that make an edit worth while"`
	Cursor       string        `yaml:"cursor" default:" ▉" check:"cursor" doc:"what stands at the end of an unfinished answer"`
	FreshFinal   time.Duration `yaml:"fresh_final_after_seconds" default:"0s" min:"0s" max:"24h" doc:"a preview older than this is replaced by a new message at the end, so that its time is right; 0: never"`
}

// Choice is the outcome of Config.ModelChoice.
type Choice struct {
	Provider string // "openai", "anthropic", "openrouter", "ollama" or "demo"
	Name     string // empty: the provider's default
	BaseURL  string // empty: the provider's own address
	APIKey   Secret // empty for ollama and demo
	// Probe is true when nothing is configured: take Ollama at BaseURL if it answers, else demo.
	Probe bool
	// Reason says in words why, for the log.
	Reason string
}

// ModelChoice says which model is to be used, from the settings alone and without any I/O. With provider "auto" the
// first of Anthropic, OpenAI and OpenRouter that has a key is taken; OpenAI also when only its base URL is set (a
// local server needs no key).
func (c *Config) ModelChoice() Choice {
	p := c.Model.Provider
	reason := "model.provider is " + p
	if p == "auto" {
		switch {
		case c.Providers.Anthropic.APIKey.IsSet():
			p, reason = "anthropic", "ANTHROPIC_API_KEY is set"
		case c.Providers.OpenAI.APIKey.IsSet():
			p, reason = "openai", "OPENAI_API_KEY is set"
		case c.Providers.OpenRouter.APIKey.IsSet():
			p, reason = "openrouter", "OPENROUTER_API_KEY is set"
		case c.Providers.OpenAI.BaseURL != "":
			p, reason = "openai", "OPENAI_BASE_URL is set"
		default:
			base := c.Model.BaseURL
			if base == "" {
				base = c.Providers.Ollama.BaseURL
			}
			return Choice{Provider: "ollama", Name: c.Model.Name, BaseURL: base, Probe: true, Reason: "no model key is set"}
		}
	}
	ch := c.Endpoint(p)
	ch.Name, ch.Reason = c.Model.Name, reason
	if c.Model.BaseURL != "" {
		ch.BaseURL = c.Model.BaseURL
	}
	return ch
}

// Endpoint returns how to reach a provider: its key and address. Name and Reason are left empty.
func (c *Config) Endpoint(provider string) Choice {
	ch := Choice{Provider: provider}
	switch provider {
	case "openai":
		ch.APIKey, ch.BaseURL = c.Providers.OpenAI.APIKey, c.Providers.OpenAI.BaseURL
	case "anthropic":
		ch.APIKey, ch.BaseURL = c.Providers.Anthropic.APIKey, c.Providers.Anthropic.BaseURL
	case "openrouter":
		ch.APIKey, ch.BaseURL = c.Providers.OpenRouter.APIKey, c.Providers.OpenRouter.BaseURL
	case "ollama":
		ch.BaseURL = c.Providers.Ollama.BaseURL
	}
	return ch
}
