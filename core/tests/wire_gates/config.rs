//! The configuration of a call.

use laneway_core::wire::CallConfig;

#[test]
fn each_field_of_a_config_is_refused_by_name() {
    type Change = fn(&mut CallConfig);
    let refused = |change: Change| {
        let mut config = CallConfig::ZERO;
        change(&mut config);
        config.validate().expect_err("illegal").to_string()
    };
    let ring = |name, value, rest| format!("runtime_env.{name}[2] is {value}, must be 0 (unset) or {rest}");
    assert_eq!(refused(|c| c.aicpu_thread_num = 1), "aicpu_thread_num (if not 0 = auto) is 1, must be 2..=2147483647");
    assert!(refused(|c| c.aicpu_thread_num = -1).starts_with("aicpu_thread_num (if not 0 = auto) is -1"));
    assert_eq!(refused(|c| c.enable_chip_swimlane = 5), "enable_chip_swimlane is 5, must be 0..=4");
    assert_eq!(refused(|c| c.enable_chip_swimlane = -1), "enable_chip_swimlane is -1, must be 0..=4");
    assert_eq!(refused(|c| c.enable_pmu = -1), "enable_pmu is -1, must be 0..=2147483647");
    let window = "4..=2147483647 and a power of two";
    assert_eq!(refused(|c| c.ring_task_window[2] = 2), ring("ring_task_window", 2, window));
    assert_eq!(refused(|c| c.ring_task_window[2] = 12), ring("ring_task_window", 12, window));
    assert!(refused(|c| c.ring_task_window[2] = 1 << 31).contains("2147483648"));
    assert_eq!(refused(|c| c.ring_heap[2] = 1023), ring("ring_heap", 1023, "1024..=18446744073709551615"));
    assert_eq!(refused(|c| c.ring_dep_pool[2] = 3), ring("ring_dep_pool", 3, "4..=2147483647"));
    assert_eq!(refused(|c| c.output_prefix.fill(b'x')), "output_prefix has no NUL in its 1024 bytes");
    let enables: [(&str, Change); 5] = [
        ("enable_chip_swimlane is 4", |c| c.enable_chip_swimlane = 4),
        ("enable_dump_args is 1", |c| c.enable_dump_args = 1),
        ("enable_pmu is 3", |c| c.enable_pmu = 3),
        ("enable_dep_gen is -1", |c| c.enable_dep_gen = -1),
        ("enable_scope_stats is 1", |c| c.enable_scope_stats = 1),
    ];
    for (text, enable) in enables {
        assert_eq!(refused(enable), format!("{text}, a diagnostic run needs an output_prefix, which is empty"));
        let mut config = CallConfig::ZERO;
        enable(&mut config);
        config.set_output_prefix(b"/tmp/x").expect("short");
        assert!(config.is_diagnostic() && config.validate().is_ok());
    }
    assert!(!CallConfig::default().is_diagnostic());
    let mut config = CallConfig::ZERO;
    assert!(config.set_output_prefix(&[b'x'; 1024]).is_err());
    assert!(config.set_output_prefix(b"a\0b").is_err());
    assert!(config.set_output_prefix(&[b'x'; 1023]).is_ok());
}
