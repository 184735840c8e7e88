//! On macOS a module for Python is linked with its symbols left open; elsewhere this does nothing.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
