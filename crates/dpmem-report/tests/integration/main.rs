//! Tests of the report through its public interface.

mod contract;
mod fixtures;
mod properties;
mod screen;
mod sources;
