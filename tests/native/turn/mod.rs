//! One turn: hooks, permissions, approvals, suspended tools, structured output, resend.

mod approval;
mod hooks;
mod listed_tools;
mod output;
mod permission;
mod persistence;
mod plan;
mod rejected;
mod resend;
mod resend_from;
mod silent_hooks;
mod skills;
mod suspended_tools;
mod tasks;
mod tool_groups;
mod tool_texts;
