//! Reports from `testdata/`, and source text that depends on no file.

use std::path::PathBuf;

use dpmem_report::{Report, Screen, SourceLines};

/// The text of `testdata/NAME.json`.
pub(crate) fn json(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata").join(format!("{name}.json"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The report in `testdata/NAME.json`.
pub(crate) fn report(name: &str) -> Report {
    serde_json::from_str(&json(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Source text of a few lines of the programs that the reports speak of.
pub(crate) struct Lines;

impl SourceLines for Lines {
    fn line(&self, file: &str, line: u32) -> Option<String> {
        let name = file.rsplit('/').next()?;
        let text = match (name, line) {
            ("train.py", 9) => "weights = dpnp.asarray(np.load(\"weights.npy\"))\n",
            ("train.py", 17) => "        hidden = dpnp.tanh(batch @ weights + bias)\n",
            ("train.py", 18) => "\tgradient = 2 * (hidden - target) * rate / len(batch)\n",
            ("train.py", 23) => "    error = dpnp.dot(delta, delta)",
            ("train.py", 25) => "    return float(error)",
            ("train.py", 31) => "    return weights.copy()",
            ("train.py", 104) => "    return [dpnp.mean(part) for part in parts]",
            ("train.py", 110) => "    np.save(path, dpnp.asnumpy(weights))",
            ("batches.py", 42) => "        seen.append(dpnp.asarray(chunk))",
            ("训练.py", 12) => "输出 = dpnp.tanh(输入 @ 权重 + 偏置)  # 前向传播的第一步",
            ("naïve.py", 3) => "señal = dpnp.fft.fft(año)",
            ("short.py", 3) => "x = 1",
            ("a_module_with_a_long_name.py", _) => "result = dpnp.concatenate([first, second, third])",
            (_, 12) => "x = \x1b[31m1\x1b[0m\t+ '\u{202e}'\r\n",
            _ => return None,
        };
        Some(text.to_owned())
    }
}

/// A screen without colour.
pub(crate) fn screen(width: usize) -> Screen<'static> {
    Screen { width, colour: false, cwd: Some(PathBuf::from("/home/user/project")), sources: &Lines }
}
