package config

import "time"

// Model says which model answers; gateway/model/provider chooses by it and Providers.
type Model struct {
	Provider  string     `yaml:"provider" default:"auto" oneof:"auto,openai,anthropic,openrouter,ollama,demo" doc:"who serves the model; auto: the first provider that has a key, else a local Ollama, else demo"`
	Name      string     `yaml:"name" env:"HERALD_MODEL" check:"text" doc:"the model's name there; unset: the provider's default"`
	BaseURL   string     `yaml:"base_url" check:"url" doc:"where the chosen provider answers, in place of its own address"`
	Context   int        `yaml:"context" default:"0" min:"0" max:"100000000" words:"auto" doc:"context window in tokens; 0: as the provider says"`
	MaxOutput int        `yaml:"max_output" default:"0" min:"0" max:"10000000" words:"auto" doc:"most tokens of one answer; 0: the provider's default"`
	Reasoning string     `yaml:"reasoning" oneof:"none,low,medium,high" doc:"effort spent on reasoning; unset: the provider's default"`
	Fallbacks []Fallback `yaml:"fallbacks" doc:"models to try in order when this one fails"`
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

// Agent is the loop's budgets and time limits. 0 switches a time limit off.
type Agent struct {
	MaxTurns       int           `yaml:"max_turns" default:"500" min:"0" max:"1000000" words:"none,unlimited,-1" doc:"model calls of one turn; 0: no limit"`
	Timeout        time.Duration `yaml:"gateway_timeout" default:"1800s" min:"0s" max:"168h" doc:"a turn without any progress for so long is ended; 0: never"`
	TimeoutWarning time.Duration `yaml:"gateway_timeout_warning" default:"900s" min:"0s" max:"168h" doc:"a turn without any progress for so long is pointed out, once; 0: never"`
	NotifyInterval time.Duration `yaml:"gateway_notify_interval" default:"180s" min:"0s" max:"24h" doc:"how often a long turn says that it still works; 0: never"`
	StallTimeout   time.Duration `yaml:"session_stall_timeout" default:"300s" min:"0s" max:"24h" doc:"with messages waiting and no progress for so long, one notice suggests /new; 0: never"`
	AutoContinue   time.Duration `yaml:"auto_continue_freshness" default:"3600s" min:"0s" max:"720h" doc:"a turn cut off by a restart goes on by itself when it is younger; an older one goes on with the chat's next message"`
	DrainTimeout   time.Duration `yaml:"restart_drain_timeout" default:"10s" min:"0s" max:"24h" doc:"how long running turns may go on after a stop signal; the rest resumes after the start"`
	InterruptGrace time.Duration `yaml:"interrupt_grace" default:"5s" min:"1s" max:"10m" doc:"how long an interrupted tool may take to end by itself before it is left behind" reload:"restart"`
	APIMaxRetries  int           `yaml:"api_max_retries" default:"3" min:"0" max:"100" doc:"how often a failed model call is repeated"`
	EmptyRetries   int           `yaml:"empty_max_retries" default:"3" min:"0" max:"100" doc:"how often an empty answer of the model is asked for again"`
	CallTimeout    time.Duration `yaml:"model_call_timeout" default:"600s" min:"1s" max:"24h" doc:"time limit of one model call without any output"`
	MaxCrashes     int           `yaml:"max_turn_crashes" default:"3" min:"1" max:"100" doc:"process crashes within one turn before it is set aside"`
	CacheSize      int           `yaml:"cache_size" default:"128" min:"1" max:"100000" doc:"conversations kept in memory" reload:"restart"`
	CacheIdle      time.Duration `yaml:"cache_idle" default:"3600s" min:"1s" max:"720h" doc:"how long a quiet conversation is kept in memory" reload:"restart"`
	Instructions   string        `yaml:"instructions" check:"long" doc:"text added to the agent's prompt" reload:"session"`
}

// Compression is when and how a long conversation is summarised.
type Compression struct {
	Enabled        bool          `yaml:"enabled" default:"true" doc:"summarise long conversations by itself"`
	Threshold      float64       `yaml:"threshold" default:"0.5" min:"0.1" max:"0.95" doc:"share of the context window at which it starts; windows below 512,000 tokens use at least 0.75"`
	ThresholdTok   int           `yaml:"threshold_tokens" default:"256000" min:"0" max:"100000000" words:"none" doc:"tokens at which it starts at the latest; 0: the share alone decides"`
	TargetRatio    float64       `yaml:"target_ratio" default:"0.2" min:"0.05" max:"0.8" doc:"share of the threshold that the newest part may take, with tail_mode lean"`
	TailMode       string        `yaml:"tail_mode" default:"lean" oneof:"lean,full" doc:"how much of the newest part is kept: what target_ratio has room for, at most protect_last_n; or all of protect_last_n"`
	ProtectLast    int           `yaml:"protect_last_n" default:"20" min:"0" max:"10000" doc:"newest messages that are kept"`
	ProtectFirst   int           `yaml:"protect_first_n" default:"3" min:"0" max:"1000" doc:"oldest messages that are kept"`
	MinTailUser    int           `yaml:"min_tail_user_messages" default:"1" min:"0" max:"1000" doc:"newest messages of people that are kept in any case"`
	MaxAttempts    int           `yaml:"max_attempts" default:"3" min:"1" max:"100" doc:"attempts in one turn after the provider said that the conversation is too long"`
	Progress       bool          `yaml:"progress_notices" default:"false" doc:"say in the chat that it happens"`
	ContextTimeout time.Duration `yaml:"context_timeout_seconds" default:"120s" min:"1s" max:"24h" doc:"time limit of one summary"`
	ContextTotal   time.Duration `yaml:"context_total_ceiling_seconds" default:"600s" min:"1s" max:"24h" doc:"time limit of all summaries of one turn together; a plain list takes the place of a summary that failed"`
}

// Streaming is how a growing answer is shown, where the platform can edit.
type Streaming struct {
	Enabled      bool          `yaml:"enabled" default:"true" doc:"show the growing answer where the platform can edit"`
	EditInterval time.Duration `yaml:"edit_interval" default:"800ms" min:"50ms" max:"1m" doc:"least time between two edits; a platform may ask for more"`
	Buffer       int           `yaml:"buffer_threshold" default:"24" min:"1" max:"10000" doc:"new characters that make an edit worth while"`
	Cursor       string        `yaml:"cursor" default:" ▉" check:"cursor" doc:"what stands at the end of an unfinished answer"`
	FreshFinal   time.Duration `yaml:"fresh_final_after_seconds" default:"0s" min:"0s" max:"24h" doc:"a preview older than this is replaced by a new message at the end, so that its time is right; 0: never"`
}
