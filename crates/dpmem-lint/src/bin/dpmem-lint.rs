//! `dpmem lint` on its own, for tests and benchmarks; people get it as part of `dpmem`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args = std::env::args_os().skip(1);
    ExitCode::from(dpmem_lint::run(
        args,
        &mut std::io::stdin(),
        &mut std::io::BufWriter::new(std::io::stdout()),
        &mut std::io::stderr(),
    ))
}
