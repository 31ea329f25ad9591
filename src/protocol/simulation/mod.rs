//! The protocol's deterministic simulation.
